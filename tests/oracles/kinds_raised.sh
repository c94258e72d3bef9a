#!/bin/sh
# kinds_raised.sh GMD TRACES BLACK_BOX SLABS THROWING RAISED PROGRAM...: every kind of verdict that gmd
# lists stands in RAISED (what faulty/planted raised), or is raised by one of these test programs,
# whose cases and planted defects are known by the kinds that they end in, or by what the workloads
# below ask for. Kinds that cannot be are named here, with the reason.
gmd=$1
traces=$2
black_box=$3
slabs=$4
throwing=$5 # "" where there is no C++ compiler
planted=$6
shift 6

# A device that is lost to the process is a real one's: the simulated device names the call that lost
# it, and api_misuse speaks first (gpu/canary_finds_pytorch106235).
exceptions='backing.device_lost'

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export GMD_TEST_RAISED="$folder/raised"
cat "$planted" >"$folder/raised" || exit 1
for program in "$@"; do
    "$program" >"$folder/log" 2>&1 || {
        cat "$folder/log"
        exit 1
    }
done
printf 'gmd-trace 1\ncapacity 4MiB\nexpect alloc a 8MiB s1\n' >"$folder/refused.gmd"
"$gmd" run "$traces/unmet.gmd" --cases none --json "$folder/served.json" >"$folder/log" 2>&1
"$gmd" run "$folder/refused.gmd" --cases none --json "$folder/refused.json" >>"$folder/log" 2>&1
"$gmd" run hidden_state --limit 100MiB --cases none --json "$folder/ended.json" >>"$folder/log" 2>&1
if [ -n "$throwing" ]; then
    "$gmd" run "$traces/too_large.gmd" --allocator "$throwing" --cases none \
        --json "$folder/threw.json" >>"$folder/log" 2>&1
else
    exceptions="$exceptions progress.exception"
fi
GMD_DEFECT=lost "$gmd" gate --allocator "$black_box" --quick --only rounds --out none \
    --json "$folder/rounds.json" >>"$folder/log" 2>&1
GMD_DEFECT=log_grows "$gmd" gate --allocator "$slabs" --quick --out none \
    --rounds "$(dirname "$0")/../faulty/cases/log_grows.gmd" --json "$folder/host.json" >>"$folder/log" 2>&1
sed -n 's/^.*"kind": "\([a-z_]*\.[a-z_]*\)".*$/\1/p' "$folder"/*.json >>"$folder/raised"

printf '%s\n' $exceptions >>"$folder/raised"
sort -u "$folder/raised" >"$folder/seen"
"$gmd" run --list-oracles | sed -n 's/^    \([a-z_.]*\) .*/\1/p' | sort >"$folder/all"
missing=$(comm -23 "$folder/all" "$folder/seen")
if [ -n "$missing" ]; then
    printf 'no test raises:\n%s\n' "$missing"
    exit 1
fi
echo "$(wc -l <"$folder/all") kinds"
