#!/bin/sh
# read_corpus.sh GMD ALLOCATOR: a corpus whose files come in turn from two kinds of devices, under different
# schedules, is read back on a real device: what states the same device shares a process. The allocator leaves
# a line for each process that loads it.
gmd=$1
allocator=$2
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
mkdir "$work/corpus"
i=0
while [ $i -lt 12 ]; do
    schedule=$([ $((i % 3)) = 0 ] && echo lazy || echo timed)
    printf 'gmd-trace 1\ncapacity %dMiB\nschedule %s\nalloc a %dKiB s1\nfree a\n' $((64 + i % 2 * 64)) "$schedule" $((i + 1)) \
        >"$work/corpus/$(printf %02d $i).gmd"
    i=$((i + 1))
done
loaded() { # by a campaign of so many sequences
    rm -f "$work/loaded"
    GMD_TEST_LOADED=$work/loaded "$gmd" fuzz --device cuda --allocator "$allocator" --corpus "$work/corpus" \
        --runs "$1" --out none >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    wc -l <"$work/loaded"
}
one=$(loaded 1) || { echo "$one"; exit 1; } # what a campaign takes to find out what can be asked, and a process
all=$(loaded 12) || { echo "$all"; exit 1; }
if [ "$all" -ne $((one + 1)) ]; then
    echo "expected 12 inputs of two headers to take one process more than one input, which takes $one: they took $all"
    exit 1
fi
