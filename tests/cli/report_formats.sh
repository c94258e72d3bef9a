#!/bin/sh
# report_formats.sh GMD DATA PLANTED - gmd report INPUT -o FILE: what each ending gives, that it is what run and replay
# write by their own options, and what is there when the allocator crashes. DATA: the folder tests/data; PLANTED: the
# allocator with planted defects.
set -eu
gmd=$1 data=$2 planted=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "$*"
    exit 1
}

# reported STATUS ARGUMENTS... - gmd report ends with this status and says nothing on standard output.
reported() {
    expected=$1 status=0
    shift
    "$gmd" report "$@" --cases none >said 2>errors || status=$?
    [ $status -eq "$expected" ] || { cat errors; fail "gmd report $*: expected exit status $expected, got $status"; }
    [ ! -s said ] || fail "gmd report $*: said something on standard output"
}

begins() { # FILE PATTERN: of its first line
    head -n 1 "$1" | grep -qE "$2" || fail "$1: does not begin with $2: $(head -n 1 "$1" | cut -c 1-80)"
}

# One run, all forms of it.
reported 0 "$data/traces/basic.gmd" -o a.md -o a.xml -o a.json -o a.sarif -o a.prom -o a.pftrace -o a.pickle -o a.c
begins a.md '^### gmd run: .*pass'
begins a.xml '^<\?xml '
begins a.json '^\{'
grep -q '"command": "run"' a.json || fail "a.json: is not what run writes"
grep -q '"version": "2.1.0"' a.sarif || fail "a.sarif: is no SARIF"
begins a.prom '^# (TYPE|HELP|UNIT) gmd'
begins a.c '^/\*'
"$gmd" run "$data/traces/basic.gmd" --quiet --perfetto by_run.pftrace --snapshot by_run.pickle
cmp a.pftrace by_run.pftrace
cmp a.pickle by_run.pickle

# The other names of the same forms.
reported 0 "$data/traces/basic.gmd" -o b.sarif.json -o b.om -o b.perfetto-trace -o b.pickle.gz
grep -q '"version": "2.1.0"' b.sarif.json || fail "b.sarif.json: is no SARIF"
begins b.om '^# (TYPE|HELP|UNIT) gmd'
cmp b.perfetto-trace a.pftrace
gzip -dc b.pickle.gz | cmp - a.pickle

# A scenario with parameters, a snapshot.
reported 0 hidden_state iterations=2 leak=false -o c.json
grep -q '"variant": "iterations=2 leak=false"' c.json || fail "c.json: is of another variant"
reported 0 "$data/histories/raw_mixed_default.pickle.gz" -o d.json -o d.pickle.gz
grep -q '"command": "replay"' d.json || fail "d.json: is not what replay writes"

# A program is made without a run: there is no PyTorch here, and none is asked for.
reported 0 "$data/traces/plain.gmd" -o e.py --allocator torch
begins e.py '^# Shows a defect of PyTorch'

# A finding is the exit status, and up to a crash all is there.
GMD_PLANT=crash
export GMD_PLANT
reported 1 "$data/traces/plain.gmd" --allocator "$planted" -o f.md -o f.pickle -o f.pftrace
begins f.md '^### gmd run: .*fail'
python3 -c '
import pickle
shot = pickle.load(open("f.pickle", "rb"))
assert any(e["action"] == "alloc" for e in shot["device_traces"][0]), shot'
[ -s f.pftrace ] || fail "f.pftrace: nothing before the crash"
unset GMD_PLANT

# An input that cannot be read is named in the report, too.
reported 2 no_such.gmd -o g.xml
grep -q 'no_such.gmd' g.xml || fail "g.xml: does not name the input"
