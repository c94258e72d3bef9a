#!/bin/sh
# files.sh GMD DATA CLAIM: what gmd does to the user's files. Each function below is a claim.
gmd=$1
data=$2
claim=$3
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
    echo "$1"
    exit 1
}

# expect STATUS PATTERN COMMAND...
expect() {
    sh "$tests/expect.sh" "$@" || exit 1
}

same_as() {
    cmp "$1" "$2" || fail "$1 was changed"
}

a_trace_is_not_replaced_by_its_report() {
    cp "$data/traces/basic.gmd" in.gmd
    expect 2 "--json ./in.gmd: is the same file as in.gmd, which is read" "$gmd" run in.gmd --json ./in.gmd
    same_as in.gmd "$data/traces/basic.gmd"
}

a_script_is_not_replaced_by_its_report() {
    echo 'print("mine")' >mine.lua
    cp mine.lua before
    expect 2 "is the same file" "$gmd" run ./mine.lua --json mine.lua
    same_as mine.lua before
}

a_history_is_not_replaced_by_its_trace() {
    cp "$data/traces/basic.gmd" in.gmd
    expect 2 "--write-trace in.gmd: is the same file" "$gmd" replay in.gmd --write-trace in.gmd
    same_as in.gmd "$data/traces/basic.gmd"
}

a_case_is_not_replaced_by_the_smaller_one() {
    cp "$data/traces/unmet.gmd" in.gmd
    ln -s in.gmd link.gmd
    expect 2 "-o link.gmd: is the same file as the case" "$gmd" minimize in.gmd -o link.gmd
    same_as in.gmd "$data/traces/unmet.gmd"
}

a_list_of_known_defects_is_not_replaced() {
    echo 'leak' >known.txt
    cp known.txt before
    expect 2 "is the same file" "$gmd" run hidden_state --known known.txt --markdown known.txt
    same_as known.txt before
}

two_reports_in_one_file_are_refused() {
    expect 2 "--junit ./x: is the same file as that of --json" "$gmd" run hidden_state --json x --junit ./x
}

two_reports_may_go_to_nowhere() {
    expect 0 "" "$gmd" run "$data/traces/basic.gmd" --json /dev/null --junit /dev/null
}

a_report_of_yesterday_survives_a_run_that_is_not_made() {
    echo yesterday >report
    expect 2 "nowhere/x: cannot be written" "$gmd" run hidden_state --json report --junit nowhere/x
    [ "$(cat report)" = yesterday ] || fail "the report is gone"
}

a_full_disk_leaves_the_report_of_yesterday() {
    echo yesterday >report
    (
        trap '' XFSZ
        ulimit -f 1 # 512 bytes or 1 KiB: the JSON of a run has more
        "$gmd" run hidden_state --cases none --json report >/dev/null 2>message
        [ $? -eq 3 ]
    ) || fail "the run did not end with 3: $(cat message)"
    grep -q "^gmd: report: writing failed: " message || fail "$(cat message)"
    [ "$(cat report)" = yesterday ] || fail "the report was touched"
    [ "$(ls)" = "message
report" ] || fail "left: $(ls)"
}

a_link_to_a_file_that_is_yet_to_be_made_stays_one() {
    ln -s later.json link.json
    expect 2 "no_such" "$gmd" run no_such_scenario --json link.json
    [ -L link.json ] || fail "the link is gone"
    expect 0 "" "$gmd" run "$data/traces/basic.gmd" --json link.json
    [ -L link.json ] && [ -s later.json ] || fail "the link was not followed"
}

a_pipe_gets_the_report_once() {
    mkfifo pipe
    cat pipe >got &
    reader=$!
    timeout 60 "$gmd" run "$data/traces/basic.gmd" --json pipe >/dev/null || fail "gmd did not end"
    wait $reader
    grep -q '"verdict": "pass"' got || fail "the reader got: $(cat got)"
}

a_campaign_makes_its_corpus() {
    expect 0 "in the corpus" "$gmd" fuzz --runs 20 --corpus new/of_today --out none
    [ "$(find new/of_today -name '*.gmd' | wc -l)" -gt 0 ] || fail "nothing was kept"
}

what_goes_into_dev_stdout_stays_where_it_was_redirected() {
    "$gmd" run "$data/traces/basic.gmd" --quiet --json /dev/stdout >out
    grep -q '"verdict": "pass"' out || fail "got: $(cat out)"
}

tests=$(dirname "$0")
case $tests in /*) ;; *) tests=$OLDPWD/$tests ;; esac
"$claim"
