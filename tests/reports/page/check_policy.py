#!/usr/bin/env python3
"""check_policy.py GMD DATA TESTS - a page's content security policy allows its own script and style sheet by their
hashes, and nothing from elsewhere."""
import base64
import hashlib
import os
import re
import sys
import tempfile
from html.parser import HTMLParser

from pages import Page, run

GMD, DATA = sys.argv[1:3]


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def policy_of(elements):
    metas = [a for tag, a in elements if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
    assert len(metas) == 1
    return {words[0]: words[1:] for words in (part.split() for part in metas[0]["content"].split(";"))}


def hash_of(html, tag):
    texts = re.findall("<%s>(.*?)</%s>" % (tag, tag), html, re.DOTALL)
    assert len(texts) == 1, "one <%s>" % tag
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "page.html")
    run(GMD, "report", os.path.join(DATA, "traces", "basic.gmd"), "-o", path, expected=(0,))
    page = Page(path)
    parser = Elements()
    parser.feed(page.html)
    policy = policy_of(parser.found)
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == [hash_of(page.html, "script")]
    assert policy["style-src"] == [hash_of(page.html, "style")]
    assert set(policy) == {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}
    assert policy["img-src"] == ["data:", "blob:"]
    tags = [tag for tag, _ in parser.found]
    assert tags.index("meta") < tags.index("style") < tags.index("script")
    for tag, attributes in parser.found:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form"), tag
        for name in attributes:
            assert not name.startswith("on") and name not in ("style", "src"), "<%s %s>" % (tag, name)
    print("nothing from elsewhere")
