#!/usr/bin/env bash
# Builds all fuzz targets with the variables that OSS-Fuzz and ClusterFuzzLite document: $CC, $CXX, $CFLAGS,
# $CXXFLAGS, $LIB_FUZZING_ENGINE, $SRC (gmd is $SRC/gmd), $OUT, $WORK. In $OUT are then fuzz_NAME,
# fuzz_NAME_seed_corpus.zip, fuzz_NAME.dict, and the libraries that they load: gmd's in lib/gmd, those of the
# system in lib, since targets run in an image without them.
set -euo pipefail

build=${WORK:-/tmp}/gmd-build
source=$SRC/gmd
targets=$(sed -n 's/^gmd_add_fuzz_target(\([a-z_]*\).*/\1/p' "$source/fuzz/targets/CMakeLists.txt")

cmake -S "$source" -B "$build" -G Ninja -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" \
    -DCMAKE_C_FLAGS="$CFLAGS" -DCMAKE_CXX_FLAGS="$CXXFLAGS" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_C_FLAGS_RELWITHDEBINFO= -DGMD_TESTS=OFF -DGMD_WERROR=OFF -DGMD_ASSERT_LEVEL=3 \
    -DGMD_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" \
    -DCMAKE_BUILD_RPATH='$ORIGIN/lib/gmd;$ORIGIN/lib/gmd/sim;$ORIGIN/lib' -DCMAKE_BUILD_RPATH_USE_ORIGIN=ON
# shellcheck disable=SC2046,SC2086 # words on purpose
cmake --build "$build" --target $(printf 'fuzz_%s ' $targets) gmd_allocator cudart13 cudart12 cuda1 nvml1

mkdir -p "$OUT/lib/gmd/sim"
cp "$build"/lib/gmd/libgmd_allocator.so "$OUT/lib/gmd/"
cp "$build"/lib/gmd/sim/lib* "$OUT/lib/gmd/sim/"
for name in $targets; do
    cp "$build/fuzz/fuzz_$name" "$OUT/"
    ldd "$build/fuzz/fuzz_$name" | awk '/lib(jansson|lua5|z)[.-]?.*=> \// { print $3 }' | while read -r library; do
        cp -n "$library" "$OUT/lib/" || true
    done
    (cd "$source/fuzz/corpus/$name" && find . -type f ! -name '.*' -print0 |
        xargs -0 python3 -m zipfile -c "$OUT/fuzz_${name}_seed_corpus.zip")
    printf '[libfuzzer]\nentropic_feature_frequency_threshold = 10\n' >"$OUT/fuzz_$name.options" # ci/fuzz: why
done
cp "$source/fuzz/dictionaries/gmd.dict" "$OUT/fuzz_trace.dict"
cp "$source/fuzz/dictionaries/pickle.dict" "$OUT/fuzz_snapshot.dict"
