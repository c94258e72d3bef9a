#!/usr/bin/env bash
# run_script.sh GMD LIBRARY DEFECT CASE VERDICT... - the Python script made from each CASE shows the defect where it is
# switched on, and nothing where it is not: with LIBRARY in PyTorch's place (standin/torch.py).
# run_script.sh GMD torch "" CASE VERDICT... - with the allocator of PyTorch in GMD_TORCH_DIR, which has the defects.
# run_script.sh GMD LIBRARY none CASE VERDICT... - with a LIBRARY that has none of them: nothing is shown.
set -eu
gmd=$1 library=$2 defect=$3
shift 3
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
. "$(dirname "$0")/lengths.sh"

if [ "$library" = torch ]; then
    [ -n "${GMD_TORCH_DIR:-}" ] || { echo "skipped: no PyTorch (GMD_TORCH_DIR)"; exit 77; }
    # Running a case makes the adapter, in a cache of this test's own.
    XDG_CACHE_HOME=$folder "$gmd" run "$1" --allocator torch --cases none >/dev/null 2>&1 || true
    library=$(echo "$folder"/gmd/torch-*.so)
    LD_LIBRARY_PATH=$GMD_TORCH_DIR/lib:
fi
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}$(dirname "$gmd")/../lib/gmd/sim
export PYTHONPATH=$(dirname "$0")/standin PYTHONDONTWRITEBYTECODE=1 GMD_STANDIN_ALLOCATOR=$library

run() { # WANTED STATUS
    status=0
    GMD_DEFECT=$2 python3 "$folder/script.py" >"$folder/output" 2>&1 || status=$?
    if [ "$status" -ne "$1" ]; then
        echo "$case with the defect '$2': expected exit status $1, got $status:" >&2
        cat "$folder/output" >&2
        exit 1
    fi
}
while [ $# -gt 0 ]; do
    case=$1 verdict=$2
    shift 2
    "$gmd" report "$case" -o "$folder/script.py" --allocator torch --oracle "$verdict"
    demand_length "$folder/script.py" "$case" "$verdict" python
    [ "$defect" != none ] || { run 0 ""; continue; }
    run 1 "$defect"
    grep -q "^SHOWN ${verdict%%.*}: " "$folder/output" || { cat "$folder/output" >&2; exit 1; }
    [ -z "$defect" ] || run 0 ""
done
