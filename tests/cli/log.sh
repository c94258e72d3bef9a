#!/bin/sh
# log.sh GMD TRACE - GMD_LOG: what it shows, that without it nothing is shown, and what is no category.
set -eu
gmd=$1 trace=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    cat log
    echo "$*"
    exit 1
}

shows() {
    grep -Eq "^gmd\[[0-9]+\] $1" log || fail "expected a line that matches: $1"
}

GMD_LOG=session,device "$gmd" run "$trace" --quiet 2>log
shows "session: opened: .* on reference, device simulated"
shows "session: request 0: alloc .*: served"
shows "session: closed after [0-9]+ requests"
shows "device: cudaMalloc: result 0"
! grep -Eq "^gmd\[[0-9]+\] (subject|process|verdict|trace|fuzz|gate): " log || fail "a category that was not named"

GMD_LOG=all "$gmd" run "$trace" --quiet 2>log
shows "trace: .* requests"
shows "subject: .*libgmd_allocator.so has malloc free init"
shows "process: forked [0-9]+ for "
shows "process: [0-9]+ ended with status 0"

"$gmd" run "$trace" --quiet 2>log
! grep -q "^gmd\[" log || fail "lines without GMD_LOG"

# From processes whose standard error is muted, too.
GMD_LOG=session,fuzz,process "$gmd" fuzz --runs 20 --seed 1 --out "$work/out" --quiet 2>log
shows "fuzz: round: [0-9]+ sequences"
shows "process: forked the fork server [0-9]+"
shows "session: request 0: "

GMD_LOG= "$gmd" run "$trace" --quiet 2>log
[ ! -s log ] || fail "an empty GMD_LOG is none"

status=0
GMD_LOG=session,sesion "$gmd" run "$trace" 2>log >out || status=$?
[ "$status" = 2 ] || fail "exit status $status for an unknown category"
[ "$(wc -l <log)" = 1 ] || fail "expected one line"
grep -q "^gmd: GMD_LOG: 'sesion' is no category; there are all, subject, session, device" log ||
    fail "expected the list of categories"
