#!/bin/sh
# churn.sh GMD REQUESTS [USES]: so many requests through PyTorch's allocator, all oracles on, none of
# them skipped that the device lets see.
here=$(dirname "$0")
trace=$(mktemp "${TMPDIR:-/tmp}/gmd-churn-XXXXXX.gmd") || exit 1
trap 'rm -f "$trace"' EXIT
"$here/churn_trace" "$2" 1 ${3:+"$3"} >"$trace"
"$here/expect_torch.sh" 0 'pass: .* requests' "$1" run "$trace" --allocator torch
