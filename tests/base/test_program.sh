#!/bin/sh
# test_program.sh PROGRAM - what a test program does whose tests have registered themselves; PROGRAM is
# some_fail.
set -u
program=$1

fail() {
    printf '%s\n' "$1" "$found"
    exit 1
}

# What it prints of its fixtures and tests, in one line.
of_run() {
    found=$("$program" "$@" 2>&1)
    status=$?
    line=$(printf '%s\n' "$found" | sed -n -e '/^the /p' -e '/^a pool/p' -e 's/^\[ *\(OK\|FAILED\|SKIPPED\) *\] \([rt]\)/\1 \2/p' |
        awk '!/^FAILED/ || !seen[$0]++' | tr '\n' ';')
}

of_run
[ $status -eq 2 ] || fail "two tests fail, and the status is $status"
case $line in
"the group begins;OK the_first_passes;the pool is opened;"*"a pool is closed;"*"the pool is opened;"*"a pool is closed;"*"OK row four;"*"the group ends;"*) ;;
*) fail "not the order of the file, or not closed: $line" ;;
esac
case $line in *"FAILED the_second_fails;"*"FAILED row five;"*) ;; *) fail "not the two that fail: $line" ;; esac

of_run the_first_passes
[ $status -eq 0 ] || fail "one test by its name: status $status"
case $line in *second* | *third* | *row*) fail "more than the one: $line" ;; esac

of_run 'row f*r' the_first_passes
[ "$status:$(printf '%s\n' "$found" | grep -c '^\[ RUN')" = 0:2 ] || fail "a pattern and a name: status $status"

of_run the_fourth
[ $status -eq 2 ] || fail "a name that there is not: status $status"
case $found in *"no test of that name"*) ;; *) fail "says nothing of the name" ;; esac

found=$("$program" --list)
[ "$(printf '%s\n' "$found" | tr '\n' ';')" = "the_first_passes;the_second_fails;the_third_is_skipped;row four;row five;" ] ||
    fail "not the list of its tests"
