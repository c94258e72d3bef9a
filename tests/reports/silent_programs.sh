#!/usr/bin/env bash
# silent_programs.sh GMD LIBRARY CASE... - the C programs made from these cases show nothing on a correct allocator.
set -eu
gmd=$1 library=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LD_LIBRARY_PATH=$(dirname "$gmd")/../lib/gmd/sim

for case in "$@"; do
    "$gmd" report "$case" -o "$folder/program.c"
    "${CC:-cc}" -Wall -Wextra -Werror "$folder/program.c" -o "$folder/program" -ldl -lpthread
    "$folder/program" "$library" >"$folder/output" 2>&1 || { echo "$case:" && cat "$folder/output" && exit 1; } >&2
done
