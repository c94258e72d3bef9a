# build_program.sh - to be sourced by scripts with $gmd and $folder: how a generated C program is built for the
# simulated device of that gmd.
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
sim=$(cd "$(dirname "$gmd")/../lib/gmd/sim" && pwd)
mkdir -p "$folder/include"
cp -r "$sources/packaging/cuda" "$folder/include"
cp "$sources"/device/gmd_cuda*.h "$folder/include"

# build_program PROGRAM.c LIBRARY OUTPUT [OPTION...]
build_program() {
    "${CC:-cc}" -Wall -Wextra -Wpedantic -Werror -I"$folder/include/cuda" "${@:4}" "$1" "$2" -L"$sim" \
        -l:libcudart.so.13 -lgmd_sim -Wl,-rpath,"$sim:$(dirname "$2")" -o "$3"
}
