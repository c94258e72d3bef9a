#!/usr/bin/env bash
# scripts.sh GMD CASES - for every case a Python script that parses, or a reason why there is none; and for every kind of
# verdict, of a case that has what scripts have functions for.
set -u
gmd=$1 cases=$2
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
scripts=0
for case in "$cases"/*.gmd; do
    script=$folder/$(basename "$case" .gmd).py
    if grep -q '^\(fault\|budget\|destroy\|thread\|device\) \|device 1$\|^leave_error$' "$case" ||
        grep -q '^alloc [^ ]* \([0-9]\{20\}\|[0-9]\{17\}KiB\|[0-9]\{14\}MiB\) ' "$case"; then # 2^63 and more
        wanted=2
    else
        wanted=0
    fi
    message=$("$gmd" report "$case" -o "$script" --allocator torch 2>&1)
    status=$?
    if [ "$status" -ne "$wanted" ]; then
        echo "$case: expected exit status $wanted, got $status: $message" >&2
        exit 1
    fi
    [ "$wanted" -eq 2 ] && continue
    python3 -m py_compile "$script" || exit 1
    request='\(expect [a-z]*\|alloc\|free\|use\|record\|wait\|sync\|advance\|empty_cache\|fraction\|[a-z]*_pool\|[a-z]*_capture\|launch\)\b'
    requests=$(grep -c "^$request" "$case")
    comments=$(grep -c "# $request" "$script")
    if [ "$requests" -ne "$comments" ]; then
        echo "$case: $requests requests, but $comments of them in the script" >&2
        exit 1
    fi
    scripts=$((scripts + 1))
done
[ "$scripts" -gt 0 ] || { echo "no script was written" >&2; exit 1; }

# Sizes as a reader of a bug report knows them, and still numbers where a limit is made of them.
script=$folder/reserved_above_cap.py
for statement in 'alloc("a", 10 \* 2\*\*20, s1)' 'if total > 40 \* 2\*\*20:' 'int(fraction \* 40 \* 2\*\*20)'; do
    grep -q "$statement" "$script" || { echo "$script has no $statement" >&2; exit 1; }
done
printf 'gmd-trace 1\n# size\nalloc a 1KiB s1\nalloc b 3KiB s1\nalloc c 1025 s1\nalloc d 1MiB s1\n' >"$folder/sizes.gmd"
"$gmd" report "$folder/sizes.gmd" -o "$folder/sizes.py" --allocator torch --oracle size || exit 1
sizes=$(grep -o '^alloc(.*, s1)' "$folder/sizes.py" | tr '\n' ' ')
wanted='alloc("a", 2**10, s1) alloc("b", 3 * 2**10, s1) alloc("c", 1025, s1) alloc("d", 2**20, s1) '
[ "$sizes" = "$wanted" ] || { echo "expected $wanted, got $sizes" >&2; exit 1; }

for kind in $("$gmd" run --list-oracles | grep -o '\b[a-z_]*\.[a-z_]*\b' | sort -u); do
    "$gmd" report "$cases/graph_memory_given_back.gmd" -o "$folder/kind-$kind.py" --allocator torch --oracle "$kind" ||
        exit 1
done
kinds=$(ls "$folder"/kind-*.py | wc -l)
[ "$kinds" -gt 50 ] || { echo "only $kinds kinds were found" >&2; exit 1; }
python3 -m py_compile "$folder"/kind-*.py || exit 1
