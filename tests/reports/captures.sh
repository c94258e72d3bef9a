#!/usr/bin/env bash
# captures.sh GMD LIBRARY - what the Python script of a case with captures does, request by request: what CUDA forbids
# meanwhile is left out, a stream that waits joins in, a free waits within the graph, a graph goes with its hold, and a
# capture that the case itself makes fail is no defect. With LIBRARY, a correct allocator, in PyTorch's place.
set -eu
gmd=$1 library=$2
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LD_LIBRARY_PATH=$(dirname "$gmd")/../lib/gmd/sim
export PYTHONPATH=$(dirname "$0")/standin PYTHONDONTWRITEBYTECODE=1 GMD_STANDIN_ALLOCATOR=$library

cat >"$folder/case.gmd" <<'CASE'
gmd-trace 1
capacity 100MiB
alloc outside 4MiB s1
begin_capture p s1
alloc a 2MiB s1
alloc elsewhere 1MiB s2
sync
empty_cache
use outside s1
wait s1 s2
wait s2 s1
use a s2
use a s3
free a
alloc b 2MiB s1
use b s1
end_capture p
launch p s3
begin_capture p s2
alloc c 2MiB s2
use c s2
end_capture p
begin_pool p
alloc d 2MiB s3
end_pool p
release_pool p
launch p s1
release_pool p
launch p s1
free b
free c
free d
release_pool p
empty_cache
alloc whole 60MiB s1
free whole
begin_capture q s1
alloc e 2MiB s1
sync s1
use e s1
end_capture q
launch q s1
free e
release_pool q
CASE
cat >"$folder/expected" <<'EXPECTED'
alloc outside 4194304 s1 -> 1
begin_capture p s1
alloc a 2097152 s1 -> 2
alloc elsewhere (left out: a stream is captured)
sync  (left out: a stream is captured)
empty_cache (left out: a stream is captured)
use outside s1 (left out: a stream is captured)
wait s1 s2 (left out: a stream is captured)
wait s2 s1
use a s2
use a s3 (left out: a stream is captured)
free a
alloc b 2097152 s1 -> 2
use b s1
end_capture p
launch p s3
begin_capture p s2
alloc c 2097152 s2 -> 3
use c s2
end_capture p
begin_pool p
alloc d 2097152 s3 -> 4
end_pool p
release_pool p
launch p s1
release_pool p
launch p s1
free b
free c
free d
release_pool p
empty_cache
alloc whole 62914560 s1 -> 2
free whole
begin_capture q s1
alloc e 2097152 s1 -> 5
sync s1
(as it should be: a call was refused: 900)
use e s1
(the capture has failed)
end_capture q
(the capture has failed)
free e
release_pool q
free outside
empty_cache
nothing shown
EXPECTED

"$gmd" run "$folder/case.gmd" --cases none --quiet >"$folder/run" || { cat "$folder/run"; exit 1; }
"$gmd" report "$folder/case.gmd" -o "$folder/case.py" --allocator torch --oracle stream_order
status=0
python3 "$folder/case.py" >"$folder/answers" 2>&1 || status=$?
# Addresses by the order of their first mention.
awk '/-> 0x/ { if (!($NF in number)) number[$NF] = ++count; $NF = number[$NF] } { print }' \
    "$folder/answers" >"$folder/output"
diff "$folder/expected" "$folder/output"
[ "$status" -eq 0 ] || { echo "expected exit status 0, got $status"; exit 1; }

# What Python raises is no defect that was shown.
export GMD_STANDIN_ALLOCATOR=$folder/none.so
status=0
python3 "$folder/case.py" >"$folder/answers" 2>&1 || status=$?
[ "$status" -eq 2 ] || { cat "$folder/answers"; echo "without an allocator: expected exit status 2, got $status"; exit 1; }
