#!/bin/sh
# pkg_config.sh PREFIX CC: pkg-config finds the program and the header in an installation, and after it has moved.
set -eu
moved=$(mktemp -d)
trap 'rm -rf "$moved"' EXIT
cp -r "$1" "$moved/gmd"
for prefix in "$1" "$moved/gmd"; do
    PKG_CONFIG_PATH=$prefix/share/pkgconfig
    export PKG_CONFIG_PATH
    "$(pkg-config --variable=gmd gmd)" --version | grep -q "^gmd $(pkg-config --modversion gmd)\$"
    [ -e "$(pkg-config --variable=simdir gmd)/libcudart.so.13" ]
    # shellcheck disable=SC2046 # words on purpose
    echo '#include <gmd_abi.h>
gmd_stats stats = {.struct_size = sizeof(gmd_stats)};' |
        "$2" -std=c17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only $(pkg-config --cflags gmd) -x c -
    "$prefix/bin/gmd" run hidden_state iterations=2 --quiet --cases none
done
