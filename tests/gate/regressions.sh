#!/usr/bin/env bash
# regressions.sh BUILD [--whole] [--repeat N] [--results FILE] - plants regressions in copies of the reference
# allocator, each built out of tree, and has the gate judge it by the baseline of an unchanged copy: each must be
# flagged in its category. Then N unchanged runs (1), none of which may be flagged. Prints a table in Markdown;
# --results also writes it to FILE (docs/results/gate-regressions.md). Exit status 1: something is not as it
# should be.
#
#     regressions.sh build/release                    only the category that the regression belongs to
#     regressions.sh build/release --whole --repeat 20    the whole of `gmd gate --quick`
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)

build=$(cd "${1:?usage: regressions.sh BUILD [--whole] [--repeat N]}" && pwd)
shift
whole=false
repeat=1
results=
. "$source/ci/results"
command="tests/gate/regressions.sh BUILD $*"
while [ $# -gt 0 ]; do
    case $1 in
    --whole) whole=true ;;
    --results) results=${2:?--results needs a file} && shift ;;
    --repeat) repeat=${2:?--repeat needs a number} && shift ;;
    *) echo "regressions.sh: unknown option '$1'" >&2 && exit 2 ;;
    esac
    shift
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# plant NAME: a copy with that regression; "unchanged": with none.
plant() {
    mkdir -p "$work/$1"
    cp "$source"/allocator/*.[ch] "$work/$1"
    if [ -f "$here/regressions/$1.sed" ]; then
        local file
        file=$(sed -n '1s/^# \([a-z_]*\.c\):.*/\1/p' "$here/regressions/$1.sed")
        sed -f "$here/regressions/$1.sed" "$source/allocator/$file" >"$work/$1/$file"
        if cmp -s "$source/allocator/$file" "$work/$1/$file"; then
            echo "regressions.sh: $1.sed changes nothing any more in allocator/$file" >&2
            exit 1
        fi
    fi
    ${CC:-cc} -std=gnu17 -O2 -w -fPIC -fvisibility=hidden -shared -I"$work/$1" -I"$source/device" \
        -I"$source/base" -o "$work/$1/libgmd_allocator.so" "$work/$1"/*.c "$build/base/libgmd_base.a" \
        "$build/lib/gmd/sim/libcudart.so.13"
}

# gate NAME OPTION...: its output is in $work/out; prints the seconds.
gate() {
    local name=$1 start=$SECONDS
    shift
    "$build/bin/gmd" gate --quick --out none --allocator "$work/$name/libgmd_allocator.so" \
        --baseline "$work/baseline.txt" "$@" >"$work/out" 2>&1 || true
    echo $((SECONDS - start))
}

# gate_figures NAME OPTION...: both kinds of figures, or with --whole all there is.
gate_figures() {
    if $whole; then
        gate "$@"
    else
        gate "$@" --only memory >/dev/null
        mv "$work/out" "$work/out.memory"
        gate "$@" --only speed
        cat "$work/out.memory" >>"$work/out"
    fi
}

# All of what gate_figures ran has passed.
has_passed() {
    [ "$(grep -c '^pass: ' "$work/out")" -eq "$($whole && echo 1 || echo 2)" ]
}

only() {
    $whole || printf '%s\n' --only "$1"
}

failed=0
if [ -n "$results" ]; then
    start_results "$results" "Regressions that the gate must flag" "$command"
    exec > >(tee -a "$results")
fi
plant unchanged
seconds=$(gate_figures unchanged --update-baseline)
printf 'baseline: %s figures in %s s\n\n' "$(grep -cE '^(memory|speed) ' "$work/baseline.txt")" "$seconds"

echo '| regression | category | flagged there | flagged as well | the worst | seconds |'
echo '| :-- | :-- | :-- | :-- | :-- | --: |'
while read -r name category; do
    plant "$name"
    # shellcheck disable=SC2046 # no words, or two
    seconds=$(gate "$name" $(only "$category"))
    others=$(sed -nE "/^$category /d; s/^(correctness|memory|speed) +fail +[0-9]+ (of|finding).*/\1/p" "$work/out" |
        paste -sd' ')
    worst=$(sed -nE "s/^$category: (.*)/\1/p" "$work/out" | head -n 1)
    if grep -qE "^$category +fail +[0-9]+ of" "$work/out"; then
        flagged=yes
    else
        flagged=NO
        failed=1
        cat "$work/out" >&2
    fi
    echo "| $name | $category | $flagged | ${others:--} | $worst | $seconds |"
done <<'LIST'
first_fit memory
no_merge memory
more_rounding memory
event_query memory
quadratic speed
LIST

flags=0
for ((i = 0; i < repeat; i++)); do
    seconds=$(gate_figures unchanged)
    if ! has_passed; then
        flags=$((flags + 1))
        failed=1
        cat "$work/out" >&2
    fi
done
printf '\n%s of %s unchanged runs flagged; the last one took %s s; load %s\n' "$flags" "$repeat" "$seconds" \
    "$(cut -d' ' -f1-3 /proc/loadavg)"
exit $failed
