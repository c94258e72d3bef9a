#!/usr/bin/env bash
# Builds all fuzz targets for ClusterFuzzLite and OSS-Fuzz, with the variables that these document
# ($CC, $CXX, $CFLAGS, $CXXFLAGS, $LIB_FUZZING_ENGINE, $SRC, $OUT, $WORK).
exec "$SRC/gmd/fuzz/oss-fuzz/build.sh"
