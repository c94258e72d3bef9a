#!/bin/sh
# few_processes.sh GMD TRACE - what could not be run for want of processes is an error, and no pass. The
# limit does not hold for root, who runs this as nobody; without root and without setpriv it is skipped.
set -eu
gmd=$1 trace=$2
skip=77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 777 "$work"
cp "$trace" "$work/case.gmd"
chmod 644 "$work/case.gmd"
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || exit $skip
as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
$as_nobody "$gmd" --version >"$work/log" 2>&1 || exit $skip # it may not read the build

# PROCESSES COMMAND...: ends with exit status 3, and names what failed.
cannot_run() {
    processes=$1
    shift
    status=0
    (cd "$work" && $as_nobody bash -c 'ulimit -u "$1"; shift; exec "$@"' few "$processes" "$gmd" "$@") \
        >"$work/log" 2>&1 </dev/null || status=$?
    if [ $status != 3 ] || ! grep -q "Resource temporarily unavailable" "$work/log"; then
        cat "$work/log"
        echo "gmd $* with $processes processes: expected exit status 3 and what failed, got $status"
        exit 1
    fi
}

for processes in 1 2 6; do
    cannot_run $processes gate --only cases --quick --out none
    cannot_run $processes fuzz --runs 2000 --seed 1 --out none
done
cannot_run 1 run case.gmd
cannot_run 1 run case.gmd --sweep
cannot_run 1 minimize case.gmd
