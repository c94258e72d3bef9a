#!/bin/sh
# locales.sh GMD HISTORY CASE - gmd's output is the same under locales with a decimal comma (de_DE) and
# with a dotless i (tr_TR). Skipped (77) where they cannot be made: Debian's package locales has them.
set -u
gmd=$1 history=$2 case=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command -v localedef >/dev/null || { echo "no localedef: skipped"; exit 77; }

for locale in de_DE tr_TR; do
    localedef -i "$locale" -f UTF-8 "$folder/$locale.UTF-8" 2>/dev/null ||
        { echo "localedef cannot make $locale: skipped"; exit 77; }
done
export LOCPATH="$folder"

# The times differ from run to run, in any locale.
without_times() {
    sed -E 's/in [0-9.]+ s \([0-9,.]+ requests\/s\)//; s/"seconds": [0-9.e-]+/"seconds": 0/'
}

outputs() {
    {
        "$gmd" replay --check "$history" --cases none --conf "garbage_collection_threshold:0.8" --json "$folder/replay.json"
        "$gmd" run "$case" --capacity 1.5GiB --cases none --json "$folder/run.json"
        "$gmd" diagnose "$history" --capacity 139.5GiB --json "$folder/diagnose.json"
        "$gmd" advise "$history" --scale 1.25 --rows 2 --jobs 1 --json "$folder/advise.json"
        "$gmd" report "$folder/once.json" -o "$folder/run.md"
        cat "$folder/replay.json" "$folder/run.json" "$folder/diagnose.json" "$folder/advise.json" \
            "$folder/run.md"
    } 2>&1 | without_times
}

"$gmd" run "$case" --cases none --quiet --json "$folder/once.json" || exit 1
LC_ALL=C.UTF-8
export LC_ALL
outputs >"$folder/C"
[ -s "$folder/C" ] || { echo "no output"; exit 1; }
failures=0
for locale in de_DE tr_TR; do
    LC_ALL=$locale.UTF-8
    [ "$(locale decimal_point)" = , ] || { echo "$locale is not in force: skipped"; exit 77; }
    outputs >"$folder/$locale"
    diff "$folder/C" "$folder/$locale" || { echo "under $locale the output differs"; failures=1; }
done
exit $failures
