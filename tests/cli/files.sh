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

an_input_that_cannot_be_read_leaves_the_page_of_yesterday() {
    echo yesterday >page.html
    echo '<html>' >other.html
    expect 2 "other.html" "$gmd" report other.html -o page.html
    expect 2 "other.html" "$gmd" report "$data/traces/basic.gmd" other.html -o page.html
    expect 2 "other.html" "$gmd" run other.html --html page.html
    [ "$(cat page.html)" = yesterday ] || fail "the page was replaced"
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

cases_of_files_with_one_name_are_kept_apart() {
    mkdir a b
    cp "$data/traces/unmet.gmd" a/c.gmd
    { cat "$data/traces/unmet.gmd"; echo "# another"; } >b/c.gmd
    "$gmd" run a/c.gmd b/c.gmd --capacity 2GiB --cases cases --json report >/dev/null
    [ "$(find cases -name 'c-*.gmd' | wc -l)" -eq 2 ] || fail "cases: $(ls cases)"
    [ "$(grep -o 'cases/c-[a-z0-9-]*.gmd' report | sort -u | wc -l)" -eq 2 ] || fail "$(cat report)"
}

a_case_of_a_case_has_no_longer_name() {
    cp "$data/traces/unmet.gmd" c.gmd
    "$gmd" run c.gmd --capacity 2GiB --cases . >/dev/null
    first=$(ls c-*.gmd)
    "$gmd" run "$first" --capacity 3GiB --cases . >/dev/null
    [ "$(ls c-*.gmd)" = "$first" ] || fail "cases: $(ls)"
}

a_case_that_is_run_again_is_its_own_case() {
    cp "$data/traces/unmet.gmd" c.gmd
    "$gmd" run c.gmd --cases cases --json report >said
    [ ! -e cases ] || fail "cases: $(ls cases)"
    grep -q '"case": "c.gmd"' report || fail "$(cat report)"
    grep -q '^    case: c.gmd$' said || fail "$(cat said)"
    grep -q '^    >    3       0  expect oom a 512MiB s1  0x' said || fail "$(cat said)"
}

a_trace_is_written_as_a_trace_too() {
    expect 0 "" "$gmd" replay "$data/traces/basic.gmd" --write-trace out.gmd
    "$gmd" replay "$data/traces/basic.gmd" --write-trace - >stdout.gmd
    same_as stdout.gmd out.gmd
    expect 0 "pass" "$gmd" run out.gmd
    [ ! -e ./- ] || fail "there is a file called -"
}

a_store_that_was_cut_is_bad_input() {
    "$gmd" run "$data/traces/basic.gmd" --store runs.db >/dev/null || exit 0 # without SQLite
    truncate -s 8192 runs.db
    expect 2 "runs.db" "$gmd" report --history runs.db
    expect 2 "runs.db" "$gmd" run "$data/traces/basic.gmd" --store runs.db
}

a_library_that_was_cut_is_bad_input() {
    library=$(dirname "$gmd")/../lib/gmd/libgmd_allocator.so
    head -c 20000 "$library" >cut.so
    expect 2 "cut.so: .*cut short" "$gmd" run "$data/traces/basic.gmd" --allocator ./cut.so
}

a_library_for_another_processor_is_bad_input() {
    cp "$(dirname "$gmd")/../lib/gmd/libgmd_allocator.so" arm.so
    printf '\267' | dd of=arm.so bs=1 seek=18 conv=notrunc status=none # EM_AARCH64
    expect 2 "arm.so is for 64-bit ARM .aarch64., and gmd loads" "$gmd" run "$data/traces/basic.gmd" --allocator ./arm.so
}

a_text_is_no_library() {
    echo "int gmd_malloc;" >text.so
    expect 2 "text.so is no shared library, as cc -shared" "$gmd" run "$data/traces/basic.gmd" --allocator ./text.so
    cp text.so text.c
    expect 2 "text.c: is not the name of a shared library" "$gmd" run "$data/traces/basic.gmd" --allocator ./text.c
}

a_library_may_be_meant_without_its_ending() {
    cp "$(dirname "$gmd")/../lib/gmd/libgmd_allocator.so" libmine.so
    expect 2 "libmine: did you mean ./libmine.so" "$gmd" run "$data/traces/basic.gmd" --allocator libmine
}

cases_need_a_folder() {
    touch cases
    expect 2 "cases: is a file, expected a folder" "$gmd" run "$data/traces/basic.gmd" --cases cases
}

a_list_that_cannot_be_written_is_a_failure() {
    [ -w /dev/full ] || exit 0
    for words in "run --list" "run --help" "--help" "--version" "replay --help"; do
        # shellcheck disable=SC2086
        "$gmd" $words >/dev/full 2>message
        status=$?
        [ $status -eq 3 ] || fail "gmd $words: $status"
        grep -q "standard output: writing failed" message || fail "gmd $words: $(cat message)"
    done
}

runs_with_other_options_are_no_history_of_each_other() {
    "$gmd" run hidden_state iterations=1 --store runs.db >/dev/null || exit 0 # without SQLite
    "$gmd" run hidden_state iterations=1 --conf max_split_size_mb:20 --store runs.db >/dev/null
    "$gmd" run no_such_scenario --store runs.db >/dev/null 2>&1
    "$gmd" report --history runs.db >history
    [ "$(grep -c '^hidden_state' history)" -eq 2 ] || fail "$(cat history)"
    grep -q -- "on sim, --conf max_split_size_mb:20" history || fail "$(cat history)"
    ! grep -q no_such history || fail "$(cat history)"
}

a_snapshot_is_not_replaced_by_that_of_its_replay() {
    cp "$data/histories/simple_cycle_leak.pickle.gz" in.pickle.gz
    cp in.pickle.gz before
    expect 2 "is the same file as in.pickle.gz, which is read" "$gmd" report in.pickle.gz -o ./in.pickle.gz
    same_as in.pickle.gz before
}

a_wrong_value_for_one_scenario_runs_none() {
    expect 2 "parameter batch=0: expected a whole number" "$gmd" run all batch=0 --json out.json
    grep -q '"scenarios": *\[[^]]*"requests": *[1-9]' out.json && fail "something ran: $(cat out.json)"
    return 0
}

what_goes_into_dev_stdout_stays_where_it_was_redirected() {
    "$gmd" run "$data/traces/basic.gmd" --quiet --json /dev/stdout >out
    grep -q '"verdict": "pass"' out || fail "got: $(cat out)"
}

tests=$(dirname "$0")
case $tests in /*) ;; *) tests=$OLDPWD/$tests ;; esac
"$claim"
