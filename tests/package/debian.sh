#!/bin/sh
# debian.sh BUILD WORK: cpack makes a package that needs nothing of NVIDIA's, and its gmd runs from where the package
# is unpacked. Skipped (77) where Debian's tools are not there.
set -eu
build=$1 work=$2
for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || { echo "skipped, no $tool"; exit 77; }
done
rm -rf "$work"
mkdir -p "$work"
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

package=$(echo "$work"/gmd_*.deb)
needs=$(dpkg-deb -f "$package" Depends)
for wanted in libc6 libjansson4 liblua5.4-0 zlib1g; do
    echo "$needs" | grep -q "$wanted" || { echo "does not depend on $wanted: $needs"; exit 1; }
done
! echo "$needs" | grep -Eqi 'cuda|nvidia' || { echo "depends on CUDA: $needs"; exit 1; }
if command -v lintian >/dev/null; then
    lintian --fail-on error "$package" 2>&1 || exit 1
fi

dpkg-deb -x "$package" "$work/root"
cd "$work"
unset GMD_LIB_DIR
root/usr/bin/gmd run hidden_state iterations=2 --quiet --cases none
root/usr/bin/gmd gate --only first --quiet --out none
zcat root/usr/share/man/man1/gmd.1.gz | grep -q '^\.TH GMD 1'
