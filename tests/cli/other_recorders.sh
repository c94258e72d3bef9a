#!/bin/sh
# other_recorders.sh GMD DATA - files of RMM, of pprof (JAX) and of torch.profiler in gmd diagnose, gmd replay and gmd
# diff, each recognised by its content. DATA: the folder tests/data.
set -eu
gmd=$1 histories=$2/histories
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "$*"
    exit 1
}

# says STATUS PATTERN COMMAND... - the command's exit status, and what its output or its error has.
says() {
    expected=$1 pattern=$2 status=0
    shift 2
    "$gmd" "$@" >said 2>&1 || status=$?
    [ $status -eq "$expected" ] || fail "gmd $*: expected exit status $expected, got $status: $(cat said)"
    grep -qE -- "$pattern" said || fail "gmd $*: expected '$pattern', found: $(cat said)"
}

# RMM's log: two blocks of one size are held at the peak, one at the end; a request failed.
cat >rmm.log <<'END'
Thread,Time,Action,Pointer,Size,Stream
7,11:48:13.000001,allocate,0x7f0000000000,3145728,0x0
7,11:48:13.000002,allocate,0x7f0000300000,3145728,0x0
7,11:48:13.000003,allocate failure,(nil),99999999999,0x0
7,11:48:13.000004,free,0x7f0000000000,3145728,0x0
END
says 0 '^Peak: 6.0 MiB allocated, event 1$' diagnose rmm.log
says 0 '^End: 3.0 MiB allocated' diagnose rmm.log
says 0 '^Out of memory: 1 time$' diagnose rmm.log
if grep -q 'lower bound' said; then fail "RMM's log has no segments that could be of a later moment"; fi
if grep -q reserved said; then fail "RMM's log says nothing of reserved memory"; fi
gzip -k rmm.log
says 0 '"recorder": "rmm"' diagnose rmm.log.gz --json -
grep -q '"complete": true' said || fail "RMM's log is whole: $(cat said)"
says 0 'pass: 5 requests' replay rmm.log --cases none
says 2 'rmm.log: was not recorded by PyTorch .rmm.: .* --check cannot judge it' replay --check rmm.log --cases none
says 0 '6.0 MiB +6.0 MiB +0 B  no frames' diff rmm.log rmm.log
head -c 150 rmm.log >cut.log
says 2 'gmd diagnose: cut.log:4: the file is cut off within this line' diagnose cut.log
says 2 'gmd replay: cut.log:4: the file is cut off within this line' replay cut.log

# A heap profile holds what its snapshot held at the peak, by line.
for history in resnet50_fixed resnet50_leak; do
    "$gmd" diagnose "$histories/$history.pickle.gz" --quiet --pprof $history.pb.gz --json $history.json || [ $? -eq 1 ]
    "$gmd" diagnose $history.pb.gz --quiet --json $history.pprof.json
    grep -q '"recorder": "pprof"' $history.pprof.json || fail "$history.pb.gz: not recognised"
    python3 - $history.json $history.pprof.json <<'END' || fail "$history: other holders"
import json
import sys
recorded, profile = (json.load(open(path, encoding="utf-8"))["peak"] for path in sys.argv[1:])
sys.exit(recorded["holders"] != profile["holders"] or recorded["allocated"] != profile["allocated"])
END
done
says 0 '^Held: 454.9 MiB allocated$' diagnose resnet50_leak.pb.gz
says 0 '[+]14.7 MiB  train.py:37 train$' diff resnet50_fixed.pb.gz resnet50_leak.pb.gz
says 1 '[+]14.7 MiB  train.py:37 train$' diff resnet50_fixed.pb.gz resnet50_leak.pb.gz --threshold 1%
says 0 '^[*] 454.9 MiB          -  resnet50_leak.pb.gz: -$' diagnose resnet50_fixed.pb.gz resnet50_leak.pb.gz
says 2 'holds no history: there is nothing to replay' replay resnet50_leak.pb.gz
gzip -dc resnet50_leak.pb.gz | head -c 3000 >cut.pb
says 2 'gmd diagnose: cut.pb: byte [0-9]+: ' diagnose cut.pb

# A memory timeline has categories. The raw form of the same says the same.
echo '[[10, 20], [[0, 1048576, 0, 0, 0, 2097152, 0, 0, 0], [0, 1048576, 0, 0, 0, 0, 0, 0, 0]]]' >timeline
echo '[[-1, 1, 1048576, 0], [900, 2, 2097152, 4], [20000, 4, -2097152, 4]]' >raw
for file in timeline raw; do
    says 0 '^Peak: 3.0 MiB allocated, time 1 of 2$' diagnose $file
    says 0 '^ +2.0 MiB  activation$' diagnose $file
    says 0 '"categories": {"activation": 2097152, "parameter": 1048576}' diagnose $file --json -
done
echo '[[10], [[0, 1048576, 0, 0, 0, 0, 0, 0, 0]]]' >less
says 0 '-2.0 MiB  activation$' diff timeline less
says 1 '[+]2.0 MiB  activation$' diff less raw --threshold 1MiB
"$gmd" diagnose raw --quiet --json raw.json
says 0 '3.0 MiB -> 3.0 MiB' diff timeline raw.json
says 2 'is a memory timeline, which has neither lines' diagnose timeline raw
says 2 'is a memory timeline of torch.profiler' replay timeline
echo '[[10], [[0, 1' >cut
says 2 "gmd diagnose: cut: byte [0-9]+: not torch.profiler's memory timeline" diagnose cut
echo '<html><body><img/></body></html>' >page
says 2 'page: is an HTML page; .* export_memory_timeline' diagnose page
