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
