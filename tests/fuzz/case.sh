#!/usr/bin/env bash
# case.sh reference|torch GMD CASE - a found case: the reference allocator passes it, and PyTorch's
# shows what the case's second line names: "# ORACLE: MESSAGE". Skipped without PyTorch.
set -u
which=$1 gmd=$2 case=$3
oracle=$(sed -n '2s/^# \([a-z_]*\): .*/\1/p' "$case")
[ -n "$oracle" ] || { echo "$case: the second line names no oracle" >&2; exit 1; }

if [ "$which" = reference ]; then
    exec "$gmd" run "$case" --cases none
fi
[ -n "${GMD_TORCH_DIR:-}" ] || { echo "skipped: GMD_TORCH_DIR is not set"; exit 77; }
found=$("$gmd" run "$case" --allocator torch --cases none --json -)
status=$?
if [ "$status" -ne 1 ] || ! grep -q "\"oracle\": \"$oracle\"" <<<"$found"; then
    echo "expected a violation of $oracle and exit status 1, got $status:" >&2
    echo "$found" >&2
    exit 1
fi
