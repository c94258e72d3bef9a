"""pages.py - reads gmd's pages, by the format of docs/reports.md and nothing of gmd's own."""
import base64
import gzip
import json
import re
import struct
import subprocess

DATA = re.compile(r'<script id="gmd-data" type="text/plain">([A-Za-z0-9+/=]*)</script>')


def column(raw, entry):
    values, value, shift = [], 0, 0
    for byte in raw:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value = shift = 0
    if entry["coding"] == "delta":
        before = 0
        for i, zigzag in enumerate(values):
            before += (zigzag >> 1) ^ -(zigzag & 1)
            values[i] = before
    assert len(values) == entry["count"]
    return values


class Page:
    def __init__(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            self.html = file.read()
        found = DATA.findall(self.html)
        assert len(found) == 1, "%s: %d elements with data" % (path, len(found))
        data = gzip.decompress(base64.b64decode(found[0]))
        assert data[:8] == b"GMDPAGE1"
        size = struct.unpack("<I", data[8:12])[0]
        self.json = json.loads(data[12 : 12 + size].decode("utf-8"))
        first = (12 + size + 7) // 8 * 8
        self.columns = {}
        for name, entry in self.json["columns"].items():
            at = first + entry["offset"]
            self.columns[name] = column(data[at : at + entry["bytes"]], entry)

    def history(self, number):
        """The columns of a history by their names without its prefix."""
        prefix = self.json["histories"][number]["prefix"]
        return {k[len(prefix) :]: v for k, v in self.columns.items() if k.startswith(prefix)}


def run(*command, expected, env=None):
    done = subprocess.run(command, check=False, capture_output=True, env=env)
    assert done.returncode in expected, "%s: status %d, not in %s\n%s" % (
        " ".join(command), done.returncode, expected, done.stderr.decode(errors="replace"))
    return done.stderr.decode(errors="replace")
