#!/bin/sh
# gpu_skips.sh SOURCE BUILD LOGS: on a machine without a GPU every step of ci/gpu that needs one is in the table as
# skipped, and nothing has failed. On a machine with a GPU this is not the question (77).
set -eu
if nvidia-smi -L 2>/dev/null | grep -q GPU; then
    echo "skipped, there is a GPU: run ci/gpu itself"
    exit 77
fi
steps="canaries gpu_tests scenarios replays loan fuzz torch_fuzz torch_inside sanitizer several"
table=$("$1/ci/gpu" --build "$2" --no-build --logs "$3" --only "$steps" 2>&1)
for step in $steps; do
    echo "$table" | grep -q "^| $step | skipped |.*no GPU" || { echo "not skipped: $step"; echo "$table"; exit 1; }
done
echo "$table" | grep -q "ci/gpu: passed"
