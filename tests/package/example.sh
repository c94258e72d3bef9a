#!/bin/sh
# example.sh PREFIX EXAMPLE WORK [PLANT PATTERN] - as somebody meets gmd: copies the project EXAMPLE to WORK, builds it
# against the installation in PREFIX and runs its CTest. Without PLANT that must pass. PLANT is an edit of sed that
# puts a defect into pool.cpp: then CTest must be red, its output must match PATTERN and name a case, and the command
# that it gives must show the defect again.
set -eu
prefix=$1 example=$2 work=$3 plant=${4:-} pattern=${5:-}

fail() {
    echo "$1"
    cat "$work/log" 2>/dev/null || true
    exit 1
}

rm -rf "$work"
mkdir -p "$work"
cp -r "$example" "$work/project"
if [ -n "$plant" ]; then
    sed "$plant" "$example/pool.cpp" >"$work/project/pool.cpp"
    ! cmp -s "$example/pool.cpp" "$work/project/pool.cpp" || fail "the edit changes nothing: $plant"
    # One finding is what is asked for here.
    sed 's/ QUICK)/ QUICK OPTIONS --fail-fast)/' "$example/CMakeLists.txt" >"$work/project/CMakeLists.txt"
fi

unset GMD_LIB_DIR CMAKE_PREFIX_PATH
cmake -S "$work/project" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror" \
    -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit="${WITHOUT_TOOLKIT:-ON}" >"$work/log" 2>&1 || fail "cmake failed"
cmake --build "$work/build" >"$work/log" 2>&1 || fail "the build failed"

status=0
ctest --test-dir "$work/build" --output-on-failure >"$work/log" 2>&1 || status=$?
reports=$work/build/gmd/gmd_gate_pool_under_test
for report in gate.json gate.xml gate.md gate.sarif; do
    [ -s "$reports/$report" ] || fail "no report $reports/$report"
done
if [ -z "$plant" ]; then
    [ "$status" -eq 0 ] || fail "the example's CTest is red"
    exit 0
fi

[ "$status" -ne 0 ] || fail "CTest is green with the defect $plant"
grep -Eq -- "$pattern" "$work/log" || fail "CTest's output does not match: $pattern"
found=$(sed -n 's/.*"replay": *"\([^"]*\)".*/\1/p' "$reports/gate.json" | head -n 1)
grep -qF -- "$found" "$work/log" || fail "CTest's output does not have the command of the report: $found"
status=0
(cd "$work" && PATH=$prefix/bin:$PATH sh -c "$found" >"$work/log" 2>&1) || status=$?
[ "$status" -eq 1 ] || fail "'$found' ended with $status, not 1"
