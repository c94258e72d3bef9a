#!/bin/sh
# Stands in for a C++ compiler: notes that it was called, and writes something where it was told to.
echo called >>"$GMD_TEST_COMPILED"
while [ $# -gt 0 ]; do
    if [ "$1" = -o ]; then
        echo "an adapter" >"$2"
    fi
    shift
done
