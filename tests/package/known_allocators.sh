#!/bin/sh
# known_allocators.sh PREFIX WORK - builds gmd's adapters of the installation in PREFIX against the stand-ins of
# known_allocators/standins; each library that comes out must carry a scenario under gmd with nothing found.
set -eu
prefix=$1 work=$2
here=$(cd "$(dirname "$0")" && pwd)

fail() {
    echo "$1"
    cat "$work/log" 2>/dev/null || true
    exit 1
}

rm -rf "$work"
mkdir -p "$work"
unset GMD_LIB_DIR CMAKE_PREFIX_PATH
cmake -S "$here/known_allocators" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wconversion -Werror" >"$work/log" 2>&1 || fail "cmake failed"
cmake --build "$work/build" >"$work/log" 2>&1 || fail "the build failed"

for library in "$work"/build/libgmd_*.so; do
    "$prefix/bin/gmd" run hidden_state --allocator "$library" >"$work/log" 2>&1 || fail "$library does not pass"
    # An adapter that refuses everything would also have nothing to find.
    "$prefix/bin/gmd" run "$here/known_allocators/served.gmd" --allocator "$library" >"$work/log" 2>&1 ||
        fail "$library serves nothing on one of the two devices"
done
