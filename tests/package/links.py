#!/usr/bin/env python3
"""links.py PREFIX - each link of the installed manual leads to a file that is installed, too."""
import os
import re
import sys

manual = os.path.join(sys.argv[1], "share", "doc", "gmd")
pages = [os.path.join(folder, name) for folder, _, names in os.walk(manual) for name in names if name.endswith(".md")]
links, dead = 0, []
for page in pages:
    with open(page, encoding="utf-8") as file:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", file.read()):
            if not re.match(r"(https?|mailto):", target):
                links += 1
                if not os.path.exists(os.path.join(os.path.dirname(page), target)):
                    dead.append(f"{page}: {target}")
print("\n".join(dead + [f"{links} links on {len(pages)} pages, {len(dead)} dead"]))
sys.exit(1 if dead or not links else 0)
