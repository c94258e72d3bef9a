#!/bin/sh
# kept_time.sh GMD PLANTED - a library that hangs is found, and makes a campaign no longer than it is to be: with
# the minimiser's share of the time, and what a busy machine takes.
set -eu
gmd=$1 planted=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
start=$(date +%s)
status=0
GMD_PLANT=hang "$gmd" fuzz --time 6s --seed 1 --allocator "$planted" --out none >log 2>&1 || status=$?
took=$(($(date +%s) - start))
if [ $status != 1 ] || ! grep -q "progress.hang" log || [ $took -gt 15 ]; then
    cat log
    echo "--time 6s took $took s, exit status $status"
    exit 1
fi
