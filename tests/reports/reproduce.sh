#!/usr/bin/env bash
# reproduce.sh GMD LIBRARY DEFECT CASE VERDICT [OPTION...] - the C program made from CASE shows the defect where it is
# switched on, and nothing where it is not. OPTION: of the compiler.
set -eu
gmd=$1 library=$2 defect=$3 case=$4 verdict=$5
shift 5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
. "$(dirname "$0")/build_program.sh"

"$gmd" report "$case" -o "$folder/program.c" --oracle "$verdict"
build_program "$folder/program.c" "$library" "$folder/program" "$@"

. "$(dirname "$0")/lengths.sh"
demand_length "$folder/program.c" "$case" "$verdict" c

run() { # WANTED STATUS
    status=0
    GMD_DEFECT=$2 "$folder/program" >"$folder/output" 2>&1 || status=$?
    if [ "$status" -ne "$1" ]; then
        echo "with the defect '$2': expected exit status $1, got $status:" >&2
        cat "$folder/output" >&2
        exit 1
    fi
}
run 1 "$defect"
grep -q "^SHOWN ${verdict%%.*}: \|^SHOWN failed: " "$folder/output" || { cat "$folder/output" >&2; exit 1; }
run 0 ""

# Where there is no device nothing is shown: here each call of the runtime says so.
"${CC:-cc}" -w -I"$folder/include/cuda" -c "$folder/program.c" -o "$folder/program.o"
{
    nm -u "$folder/program.o" | sed -n 's/.* U \(cuda[a-zA-Z]*\|gmd_sim_[a-z_]*\)$/int \1(void) { return 35; }/p'
    echo 'void *gmd_malloc(void) { return 0; }'
    echo 'void gmd_free(void) {}'
} >"$folder/no_device.c"
"${CC:-cc}" -w -shared -fPIC "$folder/no_device.c" -o "$folder/libno_device.so"
"${CC:-cc}" "$folder/program.o" "$folder/libno_device.so" -Wl,-rpath,"$folder" -o "$folder/program"
run 2 ""
grep -q "^cannot run: there is no device" "$folder/output" || { cat "$folder/output" >&2; exit 1; }
