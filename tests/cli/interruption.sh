#!/bin/sh
# interruption.sh GMD DATA PLANTED CLAIM: what a signal leaves of a command. Each function below is a claim.
# PLANTED: the library libplanted.so.
gmd=$1
data=$2
planted=$3
claim=$4
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
    cat said 2>/dev/null
    echo "$1"
    exit 1
}

# interrupt SIGNAL COMMAND...: sends the signal after a second, or when "said" has a line like $awaited; $status is set.
interrupt() {
    signal=$1
    shift
    GMD_LOG=${log-} GMD_PLANT=${plant-} "$gmd" "$@" >said 2>&1 &
    gmd_process=$!
    sleep 1
    while [ -n "${awaited-}" ] && [ -d /proc/$gmd_process ] && ! grep -q "$awaited" said; do
        sleep 0.1
    done
    kill -s "$signal" $gmd_process
    wait $gmd_process
    status=$?
}

# Every format says so, and the exit status.
expect_interrupted() {
    [ "$status" -eq 3 ] || fail "exit status $status, expected 3"
    grep -q 'interrupted' said || fail "the terminal does not say 'interrupted'"
    for report in "$@"; do
        [ -s "$report" ] || fail "$report is not there"
        grep -q 'interrupted' "$report" || fail "$report does not say 'interrupted'"
    done
    for left in *.part-* .gmd-probe-*; do
        [ ! -e "$left" ] || fail "$left is left"
    done
}

all_reports="--json a.json --junit a.xml --markdown a.md --sarif a.sarif --openmetrics a.om --store a.db"

# in_all_formats SIGNAL HISTORY COMMAND...: HISTORY: what the history calls it, or none. The command must take minutes.
in_all_formats() {
    named=$2
    signal=$1
    shift 2
    # shellcheck disable=SC2086
    interrupt "$signal" "$@" $all_reports
    expect_interrupted a.json a.xml a.md a.sarif a.om a.db
    grep -q '"verdict": "interrupted"' a.json || fail "a.json has another verdict"
    "$gmd" report a.json -o again.xml >/dev/null 2>&1
    [ $? -eq 3 ] || fail "gmd report of an interrupted result is not 3"
    ! command -v xmllint >/dev/null || xmllint --noout --schema "$data/../reports/junit.xsd" a.xml 2>said ||
        fail "a.xml is no JUnit"
    cmp a.xml again.xml || fail "gmd report makes another a.xml"
    "$gmd" report --history a.db | grep -q 'interrupted' || [ "$named" = none ] || fail "the history does not say so"
}

# A case of which hundreds of requests are needed: what can be left out is tried for long.
long_case() {
    echo 'gmd-trace 1'
    echo 'capacity 64MiB'
    i=0
    while [ $i -lt 2000 ]; do
        echo "alloc a$i $((66560 + i * 13 % 97)) s$((i % 3 + 1))"
        echo "use a$i s$((i * 7 % 5))"
        i=$((i + 1))
    done
    echo 'expect alloc b 1MiB s1'
}

a_run_tells_what_it_had_until_then() {
    in_all_formats INT run run all iterations=1,10000
    grep -q '"verdict": "pass"' a.json || fail "no run that was over before is in a.json"
    grep -q 'more scenarios or traces were not run' a.json || fail "what was not run is not named"
}

a_replay_is_interrupted() {
    in_all_formats TERM replay replay "$data/traces/threads.gmd" '--interleave=seeds 1000000000' --cases none
}

a_campaign_is_interrupted() {
    in_all_formats INT fuzz fuzz --time 600 --out none
}

a_campaign_of_several_processes_is_interrupted() {
    in_all_formats HUP fuzz fuzz --time 600 --jobs 3 --out none
}

an_exhaustive_search_is_interrupted() {
    in_all_formats TERM fuzz fuzz --exhaustive 8 --out none
}

a_gate_is_interrupted() {
    in_all_formats INT gate gate --out none
    grep -q '"ended_by": "interruption"' a.json || fail "the gate does not say who ended it"
}

a_sweep_is_interrupted() {
    in_all_formats INT sweep replay "$data/histories/varbatch_cap6_default.pickle.gz" --sweep --cases none
}

findings_of_an_interrupted_campaign_are_there() {
    plant=overlap
    awaited='^found after'
    interrupt INT fuzz --time 600 --out cases --allocator "$planted" --json a.json
    expect_interrupted a.json
    grep -q '^found after [0-9.]* s: overlap' said || fail "the finding was not told when it was found"
    grep -q '"kind": "overlap' a.json || fail "the finding is not in a.json"
    [ -n "$(ls cases)" ] || fail "no case was written"
}

an_interrupted_minimiser_writes_the_smallest_so_far() {
    long_case >long.gmd
    log=fuzz
    awaited='minimiser, try 3:'
    interrupt INT minimize long.gmd -o small.gmd
    [ "$status" -eq 3 ] || fail "exit status $status, expected 3"
    grep -q '^gmd minimize: interrupted: the smallest case so far was written' said || fail "it does not say so"
    "$gmd" run small.gmd --cases none -q
    [ $? -eq 1 ] || fail "small.gmd does not show the defect"
}

the_second_ctrl_c_ends_it_at_once() {
    # A stopped process of the allocator makes the first one take a while.
    "$gmd" fuzz --time 600 --jobs 2 --out none --json a.json >said 2>&1 &
    gmd_process=$!
    until [ "$(pgrep -P $gmd_process | wc -l)" -eq 2 ]; do
        sleep 0.05
    done
    children=$(pgrep -P $gmd_process)
    for child in $children; do
        kill -s STOP "$child"
    done
    kill -s INT $gmd_process
    sleep 0.5
    kill -s INT $gmd_process
    wait $gmd_process
    status=$?
    for child in $children; do
        kill -s CONT "$child" 2>/dev/null
    done
    [ $status -eq 130 ] || fail "exit status $status, expected 130"
    [ ! -e a.json ] || fail "a.json is there"
    for left in *.part-*; do
        [ ! -e "$left" ] || fail "$left is left"
    done
    sleep 0.5
    for child in $children; do
        [ ! -d "/proc/$child" ] || grep -q '^State:.Z' "/proc/$child/status" || fail "process $child is left"
    done
}

a_killed_process_of_a_campaign_is_replaced() {
    "$gmd" fuzz --time 2 --jobs 2 --out none >said 2>&1 &
    gmd_process=$!
    until [ "$(pgrep -P $gmd_process | wc -l)" -eq 2 ]; do
        sleep 0.05
    done
    kill -s KILL "$(pgrep -P $gmd_process | head -n 1)"
    wait $gmd_process || fail "exit status $?"
    grep -q 'note: 1 process of the campaign, ended by SIGKILL, was replaced' said || fail "no note tells of it"
}

two_signals_of_timeout_are_one() {
    timeout -s INT 1 "$gmd" fuzz --time 600 --out none --json a.json >said 2>&1
    grep -q '"verdict": "interrupted"' a.json || fail "a.json is not there"
}

no_hangup_is_heeded_under_nohup() {
    nohup "$gmd" fuzz --time 2 --out none --json a.json >said 2>&1 &
    gmd_process=$!
    sleep 0.5
    kill -s HUP $gmd_process
    wait $gmd_process || fail "exit status $?"
    grep -q '"verdict": "pass"' a.json || fail "a.json has another verdict"
}

# Where a command does not await it: the file beside the report goes, and gmd dies of the signal.
other_commands_leave_no_temporary_file() {
    "$gmd" bench --seconds 30 --json a.json >said 2>&1 &
    gmd_process=$!
    sleep 0.5
    kill -s INT $gmd_process
    wait $gmd_process
    [ $? -gt 128 ] || fail "it did not die of the signal"
    [ -z "$(ls | grep part)" ] || fail "a temporary file is left"
}

# The file has a line like $1 while the process that writes it, the last one, goes on.
expect_before_the_end() {
    gmd_process=$!
    for _ in $(seq 300); do
        sleep 0.1
        grep -q "$1" said && break
    done
    kill -s KILL $gmd_process || fail "it was over before"
    wait $gmd_process
    grep -q "$1" said || fail "nothing was told before the end"
}

runs_are_shown_when_they_are_over() {
    "$gmd" run all iterations=10000 >said 2>&1 &
    expect_before_the_end '^allocate_in_loop'
}

findings_are_told_when_they_are_found() {
    GMD_PLANT=overlap "$gmd" fuzz --time 600 --out none --allocator "$planted" >said 2>&1 &
    expect_before_the_end '^found after [0-9.]* s: '
}

"$claim"
