#!/usr/bin/env bash
# silent_programs.sh GMD LIBRARY CASE... - the C programs made from these cases show nothing on a correct allocator.
set -eu
gmd=$1 library=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
. "$(dirname "$0")/build_program.sh"

for case in "$@"; do
    "$gmd" report "$case" -o "$folder/program.c"
    build_program "$folder/program.c" "$library" "$folder/program"
    "$folder/program" >"$folder/output" 2>&1 || { echo "$case:" && cat "$folder/output" && exit 1; } >&2
done
