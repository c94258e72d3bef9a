#!/bin/sh
# render_again.sh GMD PLANTED DATA - `gmd report RESULT.json -o FILE` gives to the byte, and with the same exit
# status, what the run that wrote the JSON wrote by itself. PLANTED: the allocator with planted defects; DATA: tests/data.
set -eu
gmd=$1 planted=$2 data=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

ended_by= # a program that ends gmd

# same STATUS COMMAND...: of a run, a replay, a campaign or a gate.
same() {
    expected=$1 status=0 again=0
    shift
    # shellcheck disable=SC2086 # several words, or none
    $ended_by "$gmd" "$@" --quiet --json r.json.gz --junit a.xml --markdown a.md --sarif a.sarif --openmetrics a.om \
        >said 2>&1 || status=$?
    "$gmd" report r.json.gz -o b.xml -o b.md -o b.sarif -o b.om >said_again 2>&1 || again=$?
    [ $status -eq "$expected" ] || { cat said; echo "gmd $*: expected status $expected, got $status"; exit 1; }
    [ $again -eq "$expected" ] || { cat said_again; echo "gmd report: of gmd $*: status $again, not $expected"; exit 1; }
    for form in xml md sarif om; do
        cmp a.$form b.$form || { diff a.$form b.$form || true; echo "gmd $*: .$form differs"; exit 1; }
    done
}

same 0 run hidden_state variable_batch iterations=2,3
same 0 run hidden_state hidden_state iterations=1 --inspect
same 0 run variable_batch iterations=2 max_batch=8 --repeat 3 --seed 9223372036854775800
same 0 run variable_batch iterations=2 max_batch=8 --placement 'seeds 3' --seed 5
same 0 run gradient_accumulation leak=true,false iterations=1 --smallest-limit
same 0 run "$data/traces/basic.gmd" --sweep=memory
same 0 run "$data/traces/basic.gmd" "$data/traces/threads.gmd"
same 1 run "$data/traces/unmet.gmd" --cases cases
same 2 run no_such_file.gmd
same 0 replay --check "$data/histories/raw_mixed_default.pickle.gz"
same 1 replay --check --limit 2558MiB --cases none "$data/histories/raw_mixed_default.pickle.gz"
same 0 fuzz --runs 20 --out none

gpt=memory/scenarios/gpt/ample
same 0 gate --quick --only cases/general/rmm868 --seed 5 --out none
same 0 gate --quick --only 'random/several devices' --devices 1 --out none
grep -q 'skipped="1"' b.xml || { echo "expected an item that was skipped"; exit 1; }
same 2 gate --quick --allocator ./none.so
same 0 gate --quick --only $gpt --out none --baseline base --update-baseline
same 0 gate --quick --only $gpt --out none --baseline base
same 1 gate --quick --only $gpt --out none --baseline base --allocator cudamalloc
sed 's|^memory scenarios/gpt/ample peak_reserved .*|memory scenarios/gpt/ample peak_reserved 999999999999 B|' base >better
same 0 gate --quick --only $gpt --out none --baseline better
sed '/^machine/s/ .*/ another one/' base >elsewhere
same 0 gate --quick --only $gpt --out none --baseline elsewhere
ended_by="timeout --preserve-status -s TERM 1"
same 3 gate --deep 10m --out none
grep -q 'name="whole"' b.xml || { echo "expected a gate that was interrupted"; exit 1; }
ended_by=

GMD_PLANT=crash
export GMD_PLANT
same 1 gate --quick --only cases/general/cupy317 --out found --allocator "$planted"
same 1 gate --quick --fail-fast --out none --allocator "$planted"
same 1 gate --quick --only $gpt --out none --baseline base --allocator "$planted"
grep -q 'cannot be measured' b.md || { echo "expected figures that could not be measured"; exit 1; }
same 1 run "$data/traces/plain.gmd" --allocator "$planted" --cases cases
