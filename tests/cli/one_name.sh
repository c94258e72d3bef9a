#!/bin/sh
# one_name.sh GMD TRACES - files that have one name: each report says which is which. TRACES: tests/data/traces.
set -eu
gmd=$1 traces=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p x/old x/new
cp "$traces/basic.gmd" x/old/c.gmd
cp "$traces/basic.gmd" x/new/c.gmd
cp "$traces/basic.gmd" x/new/d.gmd

fail() {
    cat "$1"
    echo "$*"
    exit 1
}

# One file, twice: there is nothing to tell apart but the turn.
"$gmd" run x/old/c.gmd x/new/d.gmd x/old/c.gmd --quiet --junit twice.xml
grep -q '<testsuite name="c.gmd" ' twice.xml || fail twice.xml "has no c.gmd"
grep -q '<testsuite name="c.gmd #2" ' twice.xml || fail twice.xml "has no c.gmd #2"

# Two files, and one of another name.
"$gmd" run x/old/c.gmd x/new/c.gmd x/new/d.gmd --json a.json --junit a.xml --markdown a.md --openmetrics a.om >said
for report in a.json a.xml a.md a.om said; do
    grep -q 'old/c.gmd' "$report" || fail "$report" "does not name old/c.gmd"
    grep -q 'new/c.gmd' "$report" || fail "$report" "does not name new/c.gmd"
    ! grep -q '#2' "$report" || fail "$report" "has two runs of one name"
done
grep -q '<testsuite name="d.gmd" ' a.xml || fail a.xml "names more of d.gmd than it has to"

# Code hosts look for the file where SARIF says that it is.
cp "$traces/unmet.gmd" x/new/c.gmd
status=0
"$gmd" run x/old/c.gmd x/new/c.gmd --quiet --cases none --sarif a.sarif || status=$?
[ $status -eq 1 ] || fail a.sarif "expected exit status 1, got $status"
grep -q '"uri": "x/new/c.gmd"' a.sarif || fail a.sarif "does not point to x/new/c.gmd"
