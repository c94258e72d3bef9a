#!/bin/sh
# summary.sh PROJECT - ci/coverage.awk judges what it should: by small tracefiles of made-up folders.
set -eu
script=$1/ci/coverage.awk
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# FOLDER LINES-OF-TEN: a file whose second function, from line 6 on, runs last.
tracefile() {
    printf 'SF:/p/%s/a.c\nFN:1,first\nFN:6,second\n' "$1"
    for line in 1 2 3 4 5 6 7 8 9 10; do
        printf 'DA:%d,%d\nBRDA:%d,0,0,%d\n' $line $((line <= $2)) $line $((line <= $2))
    done
    echo end_of_record
}

# STATUS PATTERN LINES: the verdict with this threshold for lines, and something that it says.
expect() {
    got=0
    awk -v root=/p/ -v judged="one" -v lines="$3" -v branches=50 -v list="$work/list" -f "$script" \
        "$work/list" "$work/fuzzing" "$work/all" >"$work/said" 2>&1 || got=$?
    if [ $got -ne "$1" ] || ! grep -Eq -- "$2" "$work/said"; then
        echo "expected status $1 and '$2', got $got and:"
        cat "$work/said"
        exit 1
    fi
}

tracefile one 5 >"$work/fuzzing"
{ tracefile one 8; tracefile two 1; } >"$work/all"

echo '# nothing is listed' >"$work/list"
expect 1 'nothing runs one/a.c second, lines? 9 10' 80
echo 'one/a.c second there is a reason' >"$work/list"
expect 0 'one +50.0 % +80.0 % +50.0 % +80.0 %' 80
expect 1 'one/ has +80.0 % of its lines; 81 % are asked for' 81
echo 'one/a.c second' >"$work/list" # no reason is none
expect 1 'nothing runs one/a.c second' 80
printf 'one/a.c second there is a reason\none/a.c first this one runs\n' >"$work/list"
expect 0 'one/a.c first is in .*list, and it is all covered' 80
