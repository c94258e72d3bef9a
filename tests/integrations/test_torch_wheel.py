"""The wheel and the archive of ci/torch-wheel, with a stub in place of PyTorch and the simulated device. Environment:
GMD_TEST_LIB_DIR."""

import base64
import csv
import glob
import hashlib
import importlib.util
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
MAKE = os.path.normpath(os.path.join(HERE, "..", "..", "packaging", "torch_wheel.py"))
LIBRARIES = os.environ.get("GMD_TEST_LIB_DIR", "")
PROGRAM = """
import ctypes, sys
sys.dont_write_bytecode = True
import torch, gmd_torch, gmd_torch_watch
gmd_torch.install()
malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
malloc(torch.cuda.memory.current.functions["malloc"])(1000, 0, None)
print(gmd_torch._installed().path, gmd_torch.memory_allocated())
"""


def make(out, libraries=LIBRARIES):
    done = subprocess.run([sys.executable, "-B", MAKE, "--libraries", libraries, "--out", out], text=True,
                          capture_output=True, check=False)
    return done.stdout.split() if done.returncode == 0 else done.stderr


def used_from(folder):
    """What a program prints that finds the modules in the folder."""
    base = {k: v for k, v in os.environ.items() if k not in ("GMD_ALLOCATOR", "PYTORCH_CUDA_ALLOC_CONF")}
    base.update(PYTHONPATH=os.pathsep.join([os.path.join(HERE, "stub"), folder]),
                LD_LIBRARY_PATH=os.path.join(LIBRARIES, "sim"))
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=folder, env=base, text=True, capture_output=True,
                          timeout=60, check=False)
    return (done.stdout or done.stderr).strip()


class TorchWheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.wheel, cls.archive = make(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def unpacked(self, opened):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with opened as packed:
            packed.extractall(folder.name)
        return folder.name

    def expect_use(self, folder):
        self.assertEqual(used_from(folder),
                         os.path.join(os.path.realpath(folder), "gmd_torch_libraries", "libgmd_allocator.so") + " 1024")

    def test_an_unpacked_wheel_is_used_as_it_is(self):
        self.expect_use(self.unpacked(zipfile.ZipFile(self.wheel)))

    def test_so_is_an_unpacked_archive(self):
        self.expect_use(self.unpacked(tarfile.open(self.archive)))

    @unittest.skipUnless(importlib.util.find_spec("pip"), "no pip")
    def test_pip_installs_it_without_a_network(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile",
                            "--target", folder, self.wheel], check=True, capture_output=True)
            self.expect_use(folder)

    def test_the_record_has_every_file_with_its_hash(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
            rows = {row[0]: row[1:] for row in csv.reader(io.TextIOWrapper(wheel.open(record)))}
            self.assertEqual(sorted(rows), sorted(wheel.namelist()))
            for name, (digest, size) in rows.items():
                if name != record:
                    data = wheel.read(name)
                    hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                    self.assertEqual((digest, size), ("sha256=" + hashed, str(len(data))), name)

    def test_libraries_look_in_their_own_folder_only(self):
        folder = self.unpacked(zipfile.ZipFile(self.wheel))
        for library in glob.glob(os.path.join(folder, "gmd_torch_libraries", "*.so")):
            said = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
            paths = [line.split("[")[1].rstrip("]") for line in said.splitlines() if "RUNPATH" in line or "RPATH" in line]
            self.assertLessEqual(set(paths), {"", "$ORIGIN"}, library)

    def test_the_same_files_make_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            for made, again in zip((self.wheel, self.archive), make(folder)):
                with open(made, "rb") as one, open(again, "rb") as other:
                    self.assertEqual(one.read(), other.read())

    def test_a_library_that_is_missing_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("has no libgmd_allocator.so, libgmd_torch_hooks.so, libgmd_sanitizer.so; ci/torch-wheel "
                          "builds them", make(folder, libraries=folder))


if __name__ == "__main__":
    unittest.main(verbosity=2)
