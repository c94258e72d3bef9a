#!/bin/sh
# differential_pools.sh FUZZ_DIFFERENTIAL LIBRARY - the same inputs show a defect of pools or captures where it is switched
# on, and nothing where it is not (wrong_pools.c).
fuzz=$1
export GMD_FUZZ_ALLOCATOR=$2

if ! GMD_DEFECT='' "$fuzz" --random 3000 >/dev/null 2>&1; then
    echo "without a defect something is shown" >&2
    exit 1
fi
for defect in any_stream one_pool first_stream graph_holds_nothing gives_back; do
    if output=$(GMD_DEFECT=$defect "$fuzz" --random 3000 2>&1); then
        echo "$defect is not shown" >&2
        exit 1
    fi
    if ! echo "$output" | grep -q "the model has .*, the allocator " || ! echo "$output" | grep -q "^begin_\(pool\|capture\) "; then
        echo "$defect: expected a difference and its requests, got:" >&2
        echo "$output" | tail -20 >&2
        exit 1
    fi
done
