#!/bin/sh
# loan.sh PROGRAM: runs it where it finds a CUDA runtime; where there is none the test is skipped, visibly
# (exit status 77), and so it is without a GPU.
if ldd "$1" | grep -q 'libcudart.*not found'; then
    echo "skipped, no libcudart.so.13: set LD_LIBRARY_PATH to the CUDA 13 runtime's folder"
    exit 77
fi
exec "$@"
