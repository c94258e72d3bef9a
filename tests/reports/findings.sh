#!/usr/bin/env bash
# findings.sh GMD LIBRARY DEFECT PAGE... - the Python script of each PAGE (docs/findings) shows the defect where it is
# switched on, and nothing where it is not: with LIBRARY in PyTorch's place (standin/torch.py).
# findings.sh GMD torch "" PAGE... - with the allocator of PyTorch in GMD_TORCH_DIR, which has the defects.
# findings.sh GMD LIBRARY none PAGE... - with a LIBRARY that has none of them: nothing is shown.
# findings.sh GMD "" parse PAGE... - it parses: it needs more than the stand-in has.
set -eu
gmd=$1 library=$2 defect=$3
shift 3
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

if [ "$library" = torch ]; then
    [ -n "${GMD_TORCH_DIR:-}" ] || { echo "skipped: no PyTorch (GMD_TORCH_DIR)"; exit 77; }
    printf 'gmd-trace 1\nalloc a 1 s1\n' >"$folder/any.gmd"
    # Running a case makes the adapter, in a cache of this test's own.
    XDG_CACHE_HOME=$folder "$gmd" run "$folder/any.gmd" --allocator torch --cases none >/dev/null 2>&1 || true
    library=$(echo "$folder"/gmd/torch-*.so)
    LD_LIBRARY_PATH=$GMD_TORCH_DIR/lib:
fi
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}$(dirname "$gmd")/../lib/gmd/sim
export PYTHONPATH=$(dirname "$0")/standin PYTHONDONTWRITEBYTECODE=1 GMD_STANDIN_ALLOCATOR=$library

run() { # WANTED DEFECT: 'shown' or 'silent'
    status=0
    GMD_DEFECT=$2 timeout 60 python3 "$folder/script.py" >"$folder/output" 2>&1 || status=$?
    case $1,$status in
    # A script says so with 1. What is not its own doing is told by the interpreter, with a name: an error of CUDA is
    # what some defects end in, but a mistake in the script is not. Others end in a signal.
    shown,1) ! grep -qE '^(Attribute|Name|Type|Import|Syntax|Module).*Error' "$folder/output" ;;
    shown,134 | shown,139 | silent,0) ;;
    *) false ;;
    esac || {
        echo "$page with the defect '$2': expected to be $1, got exit status $status:" >&2
        cat "$folder/output" >&2
        exit 1
    }
}
for page; do
    sed -n '/^```python$/,/^```$/p' "$page" | sed '1d;$d' >"$folder/script.py"
    [ -s "$folder/script.py" ] || { echo "$page has no script" >&2; exit 1; }
    case $defect in
    parse) python3 -m py_compile "$folder/script.py" ;;
    none) run silent "" ;;
    "") run shown "" ;;
    *)
        sed -i '/^os.environ/d' "$folder/script.py" # planted allocators have no settings of PyTorch's
        run shown "$defect"
        run silent ""
        ;;
    esac
done
