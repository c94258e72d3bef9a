#!/bin/sh
# inspect_width.sh GMD - what --inspect shows of each scenario, and of a script with long names in a folder with a long
# name, is no wider than 100 columns in a file. The run's own lists and sentences stay lines in a file.
set -u
gmd=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

check() {
    "$gmd" run "$@" --inspect --cases none >"$work/said"
    grep -q 'Element type' "$work/said" || { echo "no tables: $*"; failed=1; }
    if grep -vE '^  (passed|skipped|bound|note|the estimates. error): ' "$work/said" | LC_ALL=C.UTF-8 grep -E '^.{101}'; then
        echo "wider than 100 columns: $*"
        failed=1
    fi
}

for scenario in $("$gmd" run --list | awk '{ print $1 }'); do
    check "$scenario"
done

folder=$work/a_folder_whose_name_is_longer_than_anybody_would_ever_want_to_type_again_and_again
mkdir "$folder"
cat >"$folder/a_script_with_a_name_that_says_everything_about_the_network_that_it_trains.lua" <<'SCRIPT'
scenario { name = "long_names", summary = "names that are longer than a column" }
the_encoder_of_the_first_modality_with_its_projection = nn.Linear { 4096, 4096 }
the_optimizer_of_the_first_modality = optim.Adam { the_encoder_of_the_first_modality_with_its_projection }
the_activations_that_somebody_has_kept_in_a_list_for_no_good_reason = list()
for i = 1, 2 do
  the_activations_that_somebody_has_kept_in_a_list_for_no_good_reason:append(the_encoder_of_the_first_modality_with_its_projection(randn { 64, 4096 }))
  the_activations_that_somebody_has_kept_in_a_list_for_no_good_reason[i]:sum():backward()
  the_optimizer_of_the_first_modality:step()
  phase("after the step of the first modality number " .. i)
end
SCRIPT
check "$folder"/*.lua
exit $failed
