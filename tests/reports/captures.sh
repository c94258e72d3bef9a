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
alloc("outside", 4 * 2**20, s1)  # alloc outside 4MiB s1
pool_1 = torch.cuda.MemPool()  # begin_capture p s1
graph_0 = torch.cuda.CUDAGraph()
with torch.cuda.stream(s1):
    graph_0.capture_begin(pool=pool_1.id)
alloc("a", 2 * 2**20, s1)  # alloc a 2MiB s1
# alloc elsewhere 1MiB s2: CUDA forbids that while a stream is captured
# sync: CUDA forbids that while a stream is captured
# empty_cache: CUDA forbids that while a stream is captured
# use outside s1 10us: CUDA forbids that while a stream is captured
# wait s1 s2: CUDA forbids that while a stream is captured
with in_capture(s2):  # wait s2 s1
    s2.wait_stream(s1)
if "a" in blocks:  # use a s2 10us
    with in_capture(s2):
        blocks["a"].memory.fill_(1)
        works[0] = blocks["a"]._replace(memory=None), graph_0
# use a s3 10us: CUDA forbids that while a stream is captured
with in_capture(s1):  # free a
    s1.wait_stream(s2)
blocks.pop("a", None)
alloc("b", 2 * 2**20, s1)  # alloc b 2MiB s1
if "b" in blocks:  # use b s1 10us
    with in_capture(s1):
        blocks["b"].memory.fill_(1)
        works[1] = blocks["b"]._replace(memory=None), graph_0
with in_capture(s1):  # end_capture p
    s1.wait_stream(s2)
with in_capture(s1):
    graph_0.capture_end()
    graphs_done.add(graph_0)
if graph_0 in graphs_done:  # launch p s3
    with torch.cuda.stream(s3):
        graph_0.replay()
graph_1 = torch.cuda.CUDAGraph()  # begin_capture p s2
with torch.cuda.stream(s2):
    graph_1.capture_begin(pool=pool_1.id)
alloc("c", 2 * 2**20, s2)  # alloc c 2MiB s2
if "c" in blocks:  # use c s2 10us
    with in_capture(s2):
        blocks["c"].memory.fill_(1)
        works[2] = blocks["c"]._replace(memory=None), graph_1
with in_capture(s2):  # end_capture p
    graph_1.capture_end()
    graphs_done.add(graph_1)
scope = torch.cuda.use_mem_pool(pool_1)  # begin_pool p
scope.__enter__()
alloc("d", 2 * 2**20, s3)  # alloc d 2MiB s3
scope.__exit__(None, None, None)  # end_pool p
# release_pool p
if graph_1 in graphs_done:  # launch p s1
    with torch.cuda.stream(s1):
        graph_1.replay()
torch.cuda.synchronize()  # release_pool p
graph_0.reset()
graphs_done.discard(graph_0)
if graph_1 in graphs_done:  # launch p s1
    with torch.cuda.stream(s1):
        graph_1.replay()
blocks.pop("b", None)  # free b
blocks.pop("c", None)  # free c
blocks.pop("d", None)  # free d
torch.cuda.synchronize()  # release_pool p
graph_1.reset()
graphs_done.discard(graph_1)
del pool_1
torch.cuda.empty_cache()  # empty_cache
alloc("whole", 60 * 2**20, s1)  # alloc whole 60MiB s1
blocks.pop("whole", None)  # free whole
pool_2 = torch.cuda.graph_pool_handle()  # begin_capture q s1
graph_2 = torch.cuda.CUDAGraph()
with torch.cuda.stream(s1):
    graph_2.capture_begin(pool=pool_2)
alloc("e", 2 * 2**20, s1)  # alloc e 2MiB s1
with in_capture(s1):  # sync s1
    s1.synchronize()
if "e" in blocks:  # use e s1 10us
    with in_capture(s1):
        blocks["e"].memory.fill_(1)
        works[3] = blocks["e"]._replace(memory=None), graph_2
with in_capture(s1):  # end_capture q
    graph_2.capture_end()
    graphs_done.add(graph_2)
# launch q s1
blocks.pop("e", None)  # free e
torch.cuda.synchronize()  # release_pool q
graph_2.reset()
graphs_done.discard(graph_2)
del pool_2
print("nothing shown", flush=True)
os._exit(0)
EXPECTED
cat >"$folder/expected_answers" <<'EXPECTED'
outside: 1
a: 2
b: 2
c: 3
d: 4
whole: 2
e: 5
the capture has failed: a call was refused: 900
the capture has failed: a call was refused: 901
the capture has failed: a call was refused: 901
nothing shown
EXPECTED

"$gmd" run "$folder/case.gmd" --cases none --quiet >"$folder/run" || { cat "$folder/run"; exit 1; }
"$gmd" report "$folder/case.gmd" -o "$folder/case.py" --allocator torch --oracle stream_order
sed -n '/^alloc("outside"/,$p' "$folder/case.py" | diff "$folder/expected" -
status=0
python3 "$folder/case.py" >"$folder/answers" 2>&1 || status=$?
# Addresses by the order of their first mention.
awk '/: 0x/ { if (!($NF in number)) number[$NF] = ++count; $NF = number[$NF] } { print }' \
    "$folder/answers" >"$folder/output"
diff "$folder/expected_answers" "$folder/output"
[ "$status" -eq 0 ] || { echo "expected exit status 0, got $status"; exit 1; }

# What Python raises is no defect that was shown.
export GMD_STANDIN_ALLOCATOR=$folder/none.so
status=0
python3 "$folder/case.py" >"$folder/answers" 2>&1 || status=$?
[ "$status" -eq 2 ] || { cat "$folder/answers"; echo "without an allocator: expected exit status 2, got $status"; exit 1; }
