#!/bin/sh
# cuda_headers.sh PREFIX CXX TOOLKIT: what C++ sources write with a toolkit's headers compiles with gmd's, and runs
# on the simulated device; with the toolkit in TOOLKIT, where there is one, it compiles as well.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sim=$1/lib/gmd/sim
for standard in c++11 c++17 c++20; do
    "$2" -std=$standard -Wall -Wextra -Wpedantic -Wconversion -Werror -I "$1/include/gmd/cuda" "$here/cuda_headers.cpp" \
        "$sim/libcudart.so.13" "-Wl,-rpath,$sim" -o "$work/program"
    "$work/program" || {
        echo "as $standard: $? expectations failed"
        exit 1
    }
done
[ ! -e "$3/cuda_runtime.h" ] || "$2" -std=c++17 -Wall -Wextra -Werror -fsyntax-only -isystem "$3" "$here/cuda_headers.cpp"
