#!/usr/bin/env python3
"""excerpts.py PAGE... - what a page shows of a kept session is in that session: a fenced block below
<!-- excerpt of SESSION --> stands there, but for white space, times and how often something was found."""
import os
import re
import sys

from transcripts import comparable

EXCERPT = re.compile(r"^<!-- excerpt of (\S+) -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def words(text):
    return re.sub(r"\b\d+ times? in all", "N times in all", comparable(text.split("\n")))


def main():
    wrong, count = [], 0
    for page in sys.argv[1:]:
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for source, excerpt in EXCERPT.findall(text):
            count += 1
            with open(os.path.join(os.path.dirname(page), source), encoding="utf-8") as file:
                session = words(file.read())
            if words(excerpt) not in session:
                wrong.append(f"{page}: is not in {source} (any more):\n{excerpt}")
    print("\n".join(wrong), end="")
    sys.exit(1 if wrong or not count else 0)


if __name__ == "__main__":
    main()
