#!/bin/sh
# help.sh SOURCE - every script of ci/ says with --help, on standard output and with status 0, what it is, and of an
# option that there is not, on standard error and with status 2, how it is used. Neither starts anything.
set -eu
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "$*"; cat "$work/out" "$work/errors"; exit 1; }

# said STATUS WORD... - runs it where a build would be seen; its output in $work.
said() {
    expected=$1 status=0
    shift
    PATH=$work/path:$PATH timeout 10 "$@" >"$work/out" 2>"$work/errors" </dev/null || status=$?
    [ $status -eq "$expected" ] || fail "$*: expected status $expected, got $status"
    [ ! -e "$work/started" ] || fail "$*: started $(cat "$work/started")"
}

# What would build or install tells that it was called.
mkdir "$work/path"
for name in cmake apt-get ctest ninja; do
    printf '#!/bin/sh\necho %s >>"%s"\n' "$name" "$work/started" >"$work/path/$name"
    chmod +x "$work/path/$name"
done

count=0
for script in ci/*; do
    [ -x "$script" ] || continue
    count=$((count + 1))
    for option in --help -h; do
        said 0 "$script" $option
        grep -q "$script" "$work/out" || fail "$script $option: its help does not name it"
        [ ! -s "$work/errors" ] || fail "$script $option: said something on standard error"
    done
    said 2 "$script" --no-such-option
    grep -q "$script" "$work/errors" || fail "$script --no-such-option: no usage on standard error"
    [ ! -s "$work/out" ] || fail "$script --no-such-option: said something on standard output"
done
[ $count -ge 13 ] || fail "only $count scripts in ci/"

# Values that are missing or name nothing; what comes behind other words; from another folder.
for words in "fuzz trace --time" "fuzz --time 5" "bench --seconds" "bench --only nothing" "planted --only" \
    "time-to-find --jobs" "gpu --logs" "setup nothing" "coverage x" "quickstart x" "build release dev" "build" \
    "gpu-libraries" "planted --results" "time-to-find --results" "bench --results" "coverage --results" \
    "gpu --results"; do
    # shellcheck disable=SC2086 # several words
    said 2 ci/$words
done
for words in "fuzz trace --help" "bench --device cuda --help" "time-to-find --no-build -h" "gpu --long --help"; do
    # shellcheck disable=SC2086
    said 0 ci/$words
done
cd ci
said 0 ./fuzz --help
grep -q '^ci/fuzz TARGET' "$work/out" || fail "./fuzz --help: not from its own folder"
