#!/bin/sh
# page_commands.sh PREFIX HEADING WORK - the commands under HEADING in the installed your-project.md, as a reader types
# them: in an empty folder, with the installation PREFIX as ~/gmd and no other gmd in sight.
set -eu
prefix=$1 heading=$2 work=$3

rm -rf "$work"
mkdir -p "$work/home" "$work/empty"
ln -s "$prefix" "$work/home/gmd"
awk -v heading="$heading" '
    /^#/ { is_inside = $0 == heading }
    /^    / && is_inside { print substr($0, 5) }' "$prefix/share/doc/gmd/docs/your-project.md" >"$work/commands"
grep -q gmd "$work/commands" || { echo "no commands under '$heading'"; exit 1; }

unset GMD_LIB_DIR CMAKE_PREFIX_PATH PKG_CONFIG_PATH
cd "$work/empty"
HOME=$work/home sh -eux ../commands
readelf -d "$(find . -name 'libmine.so')" | grep -q 'NEEDED.*\[libcudart.so.13\]'
