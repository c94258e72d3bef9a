"""offline_viz.py COMMAND ARGUMENTS...: torch.cuda._memory_viz without the network.

The commands `segments`, `memory` and `compare` hand folded stacks to flamegraph.pl, which PyTorch fetches when it is
first needed. Here the answer is a program that demands of each line what that script does: `frame;frame;... bytes`.
It is stored where PyTorch stores the script: in $HOME, which the caller throws away, or in /tmp, from where it is
removed. In torch 2.11 `compare` reads whole snapshots and takes them for lists of segments: it fails with PyTorch's
own snapshots, too, so what is behind it is called with such lists.
"""
import glob
import io
import os
import pickle
import runpy
import sys
import urllib.request

STAND_IN = rb"""#!/bin/sh
exec awk '!/[^ ] [0-9]+$/ { bad = 1 } END { if (bad) exit 1; print "<svg/>" }'
"""


class Answer(io.BytesIO):
    status = 200

    def info(self):
        return {}


def open_url(url, *_, **__):
    address = str(getattr(url, "full_url", url))
    if not address.endswith("flamegraph.pl"):
        raise RuntimeError(f"torch.cuda._memory_viz asks for {address}")
    return Answer(STAND_IN)


def stored():
    return set(glob.glob("/tmp/*flamegraph*.pl"))


def main():
    before = stored()
    urllib.request.urlopen = open_url
    try:
        if sys.argv[1] == "compare":
            from torch.cuda._memory_viz import compare  # pylint: disable=import-outside-toplevel
            compare(*(pickle.load(open(path, "rb"))["segments"] for path in sys.argv[2:4]))
        else:
            runpy.run_module("torch.cuda._memory_viz", run_name="__main__", alter_sys=True)
    finally:
        for path in stored() - before:
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass  # another command that runs at the same time was faster


if __name__ == "__main__":
    main()
