#!/usr/bin/env python3
"""The modules for PyTorch and their libraries as a wheel (PEP 427) and as an archive.

    torch_wheel.py --libraries DIR --out FOLDER

DIR has libgmd_allocator.so and the others. Prints the two paths. Times and owners in them are fixed, so that the same
files make the same bytes.
"""

import argparse
import base64
import glob
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import zipfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
LIBRARIES = ("libgmd_allocator.so", "libgmd_torch_hooks.so", "libgmd_sanitizer.so")
FOLDER = "gmd_torch_libraries"  # beside the modules, where gmd_torch.py looks
WHEN = (2020, 1, 1, 0, 0, 0)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def version():
    return re.search(r"project\(gmd VERSION ([\d.]+)", read(os.path.join(ROOT, "CMakeLists.txt")).decode()).group(1)


def with_own_folder_only(path):
    """A library of a build folder names folders of the machine where it was built, to look in first."""
    data, name = bytearray(read(path)), os.path.basename(path)
    said = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", said)
    if not found:
        return bytes(data)
    text = found.group(1).encode()
    if data.count(text + b"\0") != 1:
        raise SystemExit(f"torch_wheel.py: {name}: its run path cannot be taken out")
    kept = b"$ORIGIN" if b"$ORIGIN" in text.split(b":") else b""
    at = data.index(text + b"\0")
    data[at:at + len(text)] = kept.ljust(len(text), b"\0")
    return bytes(data)


def contents(libraries):
    """{path in site-packages: bytes}."""
    missing = [name for name in LIBRARIES if not os.path.exists(os.path.join(libraries, name))]
    if missing:
        raise SystemExit(f"torch_wheel.py: {libraries} has no {', '.join(missing)}; ci/torch-wheel builds them (it "
                         "needs a compiler for C++, too)")
    files = {os.path.basename(path): read(path)
             for path in sorted(glob.glob(os.path.join(ROOT, "integrations", "gmd_torch*.py")))}
    files.update({f"{FOLDER}/{name}": with_own_folder_only(os.path.join(libraries, name)) for name in LIBRARIES})
    files[f"{FOLDER}/LICENSE"] = read(os.path.join(ROOT, "LICENSE"))
    return files


def platform_tag():
    """The machine, and its glibc: an older one may lack functions that the libraries were linked with."""
    libc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    return f"manylinux_{libc}_{os.uname().machine}"


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write_wheel(path, files, tag):
    info = f"gmd_torch-{version()}.dist-info"
    files = dict(files)
    files[f"{info}/METADATA"] = (f"Metadata-Version: 2.1\nName: gmd-torch\nVersion: {version()}\n"
                                 "Summary: gmd's allocator inside PyTorch: memory that explains itself, and a "
                                 "sanitizer\n").encode()
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: torch_wheel.py\nRoot-Is-Purelib: false\n"
                              f"Tag: {tag}\n").encode()
    record = "".join(f"{name},{digest(data)},{len(data)}\n" for name, data in sorted(files.items()))
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in sorted(files, key=lambda n: (".dist-info/" in n, n)):
            entry = zipfile.ZipInfo(name, WHEN)
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, files[name])


def write_archive(path, files):
    with open(path, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w") as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            entry.mode = 0o755 if name.endswith(".so") else 0o644
            archive.addfile(entry, io.BytesIO(files[name]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    files = contents(options.libraries)
    tag = f"py3-none-{platform_tag()}"
    wheel = os.path.join(options.out, f"gmd_torch-{version()}-{tag}.whl")
    archive = os.path.join(options.out, f"gmd_torch-{version()}-{platform_tag()}.tar.gz")
    write_wheel(wheel, files, tag)
    write_archive(archive, files)
    print(wheel, archive, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
