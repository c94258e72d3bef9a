#!/bin/sh
# full_disk.sh GMD DATA PLANTED: with no room for a case, for a corpus or for a report nothing that was found is lost.
# Files that may not grow (ulimit -f) stand for the disk: writes fail, as they do there, for any user. PLANTED: the
# library libplanted.so.
set -u
gmd=$1
data=$2
planted=$3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# on_full_disk STATUS PATTERN ARGUMENTS...: pipes take the output, as files could not.
on_full_disk() {
    expected=$1
    pattern=$2
    shift 2
    said=$( (
        ulimit -f 0
        GMD_PLANT=leak "$gmd" "$@" 2>&1
        echo "exit status $?"
    ) | cat)
    for line in "$pattern" "exit status $expected"; do
        if ! printf '%s\n' "$said" | grep -Eq -- "$line"; then
            printf 'gmd %s: expected "%s", got:\n%s\n' "$*" "$line" "$said"
            exit 1
        fi
    done
}

unwritten="could not be written: [^ ]*: writing failed: File too large"
on_full_disk 1 "^found after [0-9.]+ s: leak" fuzz --runs 200 --allocator "$planted" --out cases
on_full_disk 1 "^gmd fuzz: a case of leak $unwritten" fuzz --runs 200 --allocator "$planted" --out cases
on_full_disk 1 "note: [1-9] cases? $unwritten|note: [1-9] cases could not be written, first" \
    fuzz --runs 200 --allocator "$planted" --out cases
on_full_disk 1 "^found after" fuzz --runs 200 --jobs 2 --allocator "$planted" --out cases --corpus corpus
on_full_disk 1 "^gmd gate: a case of leak $unwritten" gate --quick --only cases --allocator "$planted" --out cases
on_full_disk 1 "note: cases/.*: a case $unwritten" gate --quick --only cases --allocator "$planted" --out cases
on_full_disk 1 "^gmd: the failing case $unwritten" run "$data/traces/basic.gmd" --allocator "$planted" --cases cases
on_full_disk 1 "note: the failing case $unwritten" run "$data/traces/basic.gmd" --allocator "$planted" --cases cases
on_full_disk 1 "^gmd: the failing case $unwritten" replay "$data/traces/basic.gmd" --allocator "$planted" --cases cases
# What was asked for and is not there makes it 3, and the finding is told all the same.
on_full_disk 3 "  oom_retry, request 7: " run "$data/traces/basic.gmd" --allocator "$planted" --cases none --json a.json
on_full_disk 3 "^gmd: a.json: writing failed: File too large" run "$data/traces/basic.gmd" --allocator "$planted" \
    --cases none --json a.json
on_full_disk 3 "^gmd: a.xml: writing failed" run "$data/traces/basic.gmd" --allocator "$planted" --cases none \
    --json a.json --junit a.xml
on_full_disk 3 "<testsuites" run "$data/traces/basic.gmd" --allocator "$planted" --cases none --json a.json --junit -
on_full_disk 3 "^  oom_retry: " minimize "$data/traces/basic.gmd" --allocator "$planted" -o small.gmd
on_full_disk 3 "^gmd minimize: small.gmd: writing failed" minimize "$data/traces/basic.gmd" --allocator "$planted" \
    -o small.gmd

for left in * cases/* corpus/* corpus/.*; do
    case $left in
    cases | corpus | corpus/. | corpus/.. | *\**) ;;
    *)
        echo "$left is left"
        exit 1
        ;;
    esac
done

# The same on a disk that is full, where one can be made.
mkdir disk
if mount -t tmpfs -o size=64k none disk 2>/dev/null; then
    trap 'umount "$folder/disk"; rm -rf "$folder"' EXIT
    dd if=/dev/zero of=disk/rest bs=1024 count=64 2>/dev/null
    GMD_PLANT=leak "$gmd" fuzz --runs 200 --allocator "$planted" --out disk >said 2>&1
    status=$?
    if [ $status -ne 1 ] || ! grep -q '^found after' said || ! grep -q 'No space left on device' said; then
        cat said
        echo "exit status $status on a full disk"
        exit 1
    fi
fi
