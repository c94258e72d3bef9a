#!/bin/sh
# diff_of_results.sh GMD DATA - gmd diff of what gmd writes with --json, and of what it does not. DATA: the folder
# tests/data.
set -eu
gmd=$1 histories=$2/histories
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "$*"
    exit 1
}

# wrote STATUS FILE COMMAND... - the command's JSON is in FILE.
wrote() {
    expected=$1 file=$2 status=0
    shift 2
    "$gmd" "$@" --quiet --json "$file" || status=$?
    [ $status -eq "$expected" ] || fail "gmd $*: expected exit status $expected, got $status"
}

# refused FILE PATTERN - gmd diff refuses it in these words.
refused() {
    status=0
    "$gmd" diff "$1" "$1" >said 2>errors || status=$?
    [ $status -eq 2 ] || fail "gmd diff $1: expected exit status 2, got $status"
    grep -qE "$2" errors || fail "gmd diff $1: expected '$2', found: $(cat errors)"
}

# Two diagnoses say what their snapshots say, by line, by category and in figures.
wrote 0 before.json diagnose "$histories/resnet50_fixed.pickle.gz"
wrote 1 after.json diagnose "$histories/resnet50_leak.pickle.gz"
for moment in peak end; do
    "$gmd" diff "$histories/resnet50_fixed.pickle.gz" "$histories/resnet50_leak.pickle.gz" --at $moment | tail -n +2 >files
    "$gmd" diff before.json after.json --at $moment | tail -n +2 >results
    cmp files results
done
# One of each is as good.
"$gmd" diff "$histories/resnet50_fixed.pickle.gz" after.json | grep -q '[+].* train.py:37 train' || fail "no line"

# Two runs: lines with --lines, categories with --timeline, else figures.
wrote 0 three.json run hidden_state iterations=3 --lines --timeline
wrote 0 four.json run hidden_state iterations=4 --lines --timeline
"$gmd" diff three.json four.json >said
grep -qE '[+][0-9.]+ MiB  hidden_state.lua:[0-9]+$' said || fail "no line of the script: $(cat said)"
grep -qE '[+][0-9.]+ MiB  activation$' said || fail "no category: $(cat said)"
grep -qE '[+]22  requests$' said || fail "no figure: $(cat said)"
status=0
"$gmd" diff three.json four.json --quiet --threshold 10% || status=$?
[ $status -eq 1 ] || fail "a growth of a fifth is past 10 %: expected exit status 1, got $status"
wrote 0 plain.json run hidden_state iterations=3
"$gmd" diff plain.json plain.json >said
if grep -q '  line$' said; then fail "lines of a run without --lines"; fi
grep -q '  allocated$' said || fail "no figures of a run without --lines"

# Several runs are told apart by their names.
wrote 0 both.json run hidden_state iterations=3,4
"$gmd" diff both.json both.json | grep -q 'hidden_state iterations=4: allocated$' || fail "no figure of the second run"

# Whatever else is JSON is refused.
echo '{"gmd": "1", "command": "bench"}' >bench.json
refused bench.json 'bench.json: expected what gmd run, replay or diagnose writes with --json, found "command": bench'
echo '{"a": 1}' >other.json
refused other.json 'other.json: expected what gmd run, replay or diagnose writes with --json'
echo '{"a":' >cut.json
refused cut.json 'cut.json:[0-9]+:[0-9]+: expected JSON'
sed 's/"holders": \[/"holders": 7, "was": [/' after.json >damaged.json
refused damaged.json 'damaged.json: peak: "holders": expected an array'
