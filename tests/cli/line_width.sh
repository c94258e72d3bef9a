#!/bin/sh
# line_width.sh GMD HISTORIES RECORDINGS - nothing on the screen is wider than 80 columns. HISTORIES:
# tests/data/histories. RECORDINGS: of tests/diagnosis, jobs whose lines have long names and figures.
set -u
gmd=$1 histories=$2 recordings=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LC_ALL=C
export LC_ALL
failed=0
cd "$work" || exit 1

# What a command prints; its exit status may be a finding's. A setting to copy stays on its line.
check() {
    "$@" >said
    [ -s said ] || failed=1
    if grep -v "^  PYTORCH_CUDA_ALLOC_CONF=" said | grep -E "^.{81}|^ +\$"; then
        echo "wider than 80 columns, or blank: $*"
        failed=1
    fi
}

check "$gmd" --help
check "$gmd" diagnose --help
check "$gmd" advise --help
for job in 004 006 020 066; do
    cp "$recordings/job_$job.pickle.gz" job.pickle.gz
    check "$gmd" diagnose job.pickle.gz
done
for history in left_free_1.2 raw_mixed_default varbatch_cap6_default seq2seq; do
    cp "$histories/$history.pickle.gz" .
    check "$gmd" diagnose $history.pickle.gz
done
cp "$histories/all_settings.pickle.gz" settings.pickle.gz
check "$gmd" advise settings.pickle.gz
exit $failed
