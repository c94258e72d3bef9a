#!/usr/bin/env bash
# case.sh reference|torch GMD CASE - a found case: the reference allocator passes it, and PyTorch's
# shows what the case's second line names: "# ORACLE: MESSAGE" or "# ORACLE.KIND PARTIES: MESSAGE". Skipped without PyTorch.
set -u
which=$1 gmd=$2 case=$3
verdict=$(sed -n '2s/^# \([a-z_]*\(\.[a-z_]*\)\{0,1\}\)\(: \| [a-z0-9]*=\).*/\1/p' "$case")
case $verdict in
"") echo "$case: the second line names no verdict" >&2 && exit 1 ;;
*.*) wanted="\"kind\": \"$verdict\"" ;;
*) wanted="\"oracle\": \"$verdict\"" ;;
esac

if [ "$which" = reference ]; then
    exec "$gmd" run "$case" --cases none
fi
[ -n "${GMD_TORCH_DIR:-}" ] || { echo "skipped: GMD_TORCH_DIR is not set"; exit 77; }
found=$("$gmd" run "$case" --allocator torch --cases none --json -)
status=$?
if [ "$status" -ne 1 ] || ! grep -qF "$wanted" <<<"$found"; then
    echo "expected $wanted and exit status 1, got $status:" >&2
    echo "$found" >&2
    exit 1
fi
