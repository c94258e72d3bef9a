#!/bin/sh
# limits.sh GMD DATA PLANTED: with too few descriptors, too little memory or too small a stack each command ends with a
# message and exit status 3 (2 where a file cannot be opened), or does its work; it neither passes what it did not judge nor crashes, and it blames no
# allocator. PLANTED: the library libplanted.so, which has no defect here.
set -u
gmd=$1
data=$2
planted=$3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
requests=

# under LIMIT ARGUMENTS...
under() {
    limit=$1
    shift
    # The limit holds for gmd alone: the shell has descriptors of its own.
    said=$(sh -c "ulimit $limit && exec \"\$@\"" sh "$gmd" "$@" --allocator "$planted" 2>&1)
    status=$?
    case $status in
    0) [ -z "$requests" ] || printf '%s\n' "$said" | grep -q "$requests" || wrong "passed something else" "$@" ;;
    2 | 3) printf '%s\n' "$said" | grep -q '^gmd' || wrong "has no message" "$@" ;;
    127) printf '%s\n' "$said" | grep -q 'loading shared libraries' || wrong "ended with $status" "$@" ;; # not gmd yet
    *) wrong "ended with $status" "$@" ;;
    esac
}

wrong() {
    printf 'ulimit %s, gmd %s\n%s\n' "$limit" "$*" "$said"
    exit 1
}

for limit in "-n 4" "-n 5" "-n 6" "-n 7" "-n 8" "-n 10" "-v 20000" "-v 100000" "-v 400000" "-v 1000000" "-s 64" "-s 128" \
    "-s 256"; do
    requests="pass: 12 requests"
    under "$limit" run "$data/traces/basic.gmd" --cases none
    under "$limit" replay "$data/traces/basic.gmd" --cases none
    requests=
    under "$limit" fuzz --runs 50 --out none
    under "$limit" fuzz --runs 50 --out none --jobs 2
    under "$limit" fuzz --exhaustive 1 --out none
    under "$limit" run "$data/traces/basic.gmd" --sweep=memory --cases none
    requests="pass: .*, 0 findings, 4,[0-9]* requests"
    under "$limit" gate --quick --only cases --out none
done
