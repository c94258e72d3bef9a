#!/usr/bin/env bash
# reproduce.sh GMD LIBRARY DEFECT CASE ORACLE - the C program made from CASE shows the defect where it is
# switched on, and nothing where it is not.
set -eu
gmd=$1 library=$2 defect=$3 case=$4 oracle=$5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LD_LIBRARY_PATH=$(dirname "$gmd")/../lib/gmd/sim

"$gmd" report "$case" -o "$folder/program.c" --oracle "$oracle"
"${CC:-cc}" -Wall -Wextra -Werror "$folder/program.c" -o "$folder/program" -ldl -lpthread

run() { # WANTED STATUS
    status=0
    GMD_DEFECT=$2 "$folder/program" "$library" >"$folder/output" 2>&1 || status=$?
    if [ "$status" -ne "$1" ]; then
        echo "with the defect '$2': expected exit status $1, got $status:" >&2
        cat "$folder/output" >&2
        exit 1
    fi
}
run 1 "$defect"
grep -q "^SHOWN $oracle: \|^SHOWN failed: " "$folder/output" || { cat "$folder/output" >&2; exit 1; }
run 0 ""

# Where there is no device nothing is shown: here each call of the runtime says so.
{
    grep -o 'FIND([a-zA-Z]*)' "$folder/program.c" | sort -u | sed 's/FIND(\(.*\))/int \1(void) { return 35; }/'
    echo 'void *gmd_malloc(void) { return 0; }'
    echo 'void gmd_free(void) {}'
} | grep -v ' name(' >"$folder/no_device.c"
"${CC:-cc}" -w -shared -fPIC "$folder/no_device.c" -o "$folder/no_device.so"
library=$folder/no_device.so
run 2 ""
grep -q "^cannot run: cuda[A-Za-z]*: CUDA error 35" "$folder/output" || { cat "$folder/output" >&2; exit 1; }
