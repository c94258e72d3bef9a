"""syntax.py - a C file as Clang sees it: the tree of its declarations and statements, each node with
the bytes of the file that it was read from.

Clang's JSON leaves out what it said last (the file of a location), so locations are completed in the
order in which they were written. What comes out of a macro has the place of the macro's use."""

import json
import re
import subprocess


class SyntaxFailure(Exception):
    pass


class Tree:
    """The syntax tree of one translation unit."""

    def __init__(self, arguments):
        done = subprocess.run(arguments, capture_output=True, check=False)
        if done.returncode != 0:
            raise SyntaxFailure("%s: %s" % (" ".join(arguments), done.stderr.decode()[:2000]))
        self.root = json.loads(done.stdout)
        self._file = ""
        self._texts = {}
        self.fields = {}      # id of a field -> the ids of its struct's fields, in their order
        self.field_of = {}    # id of a field -> (name, type)
        self.constants = {}   # id of an enumeration's constant -> the names of all of them
        self._complete(self.root)
        self._learn(self.root)

    def text(self, file):
        if file not in self._texts:  # offsets are bytes: one byte, one character
            with open(file, encoding="latin-1") as stream:
                self._texts[file] = stream.read()
        return self._texts[file]

    # --- locations -----------------------------------------------------------------------------

    def _bare(self, location):
        if "offset" in location:
            self._file = location.get("file", self._file)
            location["file"] = self._file

    def _location(self, location):
        for part in ("spellingLoc", "expansionLoc"):
            if part in location:
                self._bare(location[part])
        self._bare(location)

    def _complete(self, node):
        """Fills in the files; a stack of its own, for trees are deep."""
        stack = [node]
        while stack:
            node = stack.pop()
            if "loc" in node:
                self._location(node["loc"])
            if "range" in node:
                self._location(node["range"]["begin"])
                self._location(node["range"]["end"])
            stack.extend(child for child in reversed(node.get("inner", ())) if child)

    def span(self, node):
        """(file, first byte, byte behind, is all of it a macro), or None: it is in no file."""
        places = []
        for end in ("begin", "end"):
            location = node.get("range", {}).get(end, {})
            of_macro = "expansionLoc" in location
            if of_macro:
                if location["expansionLoc"].get("isMacroArgExpansion"):
                    return None
                location = location["expansionLoc"]
            if "offset" not in location:
                return None
            places.append((location["file"], location["offset"], location["tokLen"], of_macro))
        (file, first, _, first_macro), (end_file, last, length, last_macro) = places
        if file != end_file or not file:
            return None
        behind = last + length
        if last_macro:
            behind = behind_call(self.text(file), behind)
        return file, first, behind, first_macro and last_macro and first == last

    # --- declarations --------------------------------------------------------------------------

    def _learn(self, node):
        stack = [node]
        while stack:
            node = stack.pop()
            inner = [child for child in node.get("inner", ()) if child]
            if node.get("kind") == "RecordDecl":
                fields = [child for child in inner if child.get("kind") == "FieldDecl"]
                for field in fields:
                    self.fields[field["id"]] = [other["id"] for other in fields]
                    self.field_of[field["id"]] = (field.get("name"), field["type"]["qualType"])
            elif node.get("kind") == "EnumDecl":
                names = [c["name"] for c in inner if c.get("kind") == "EnumConstantDecl"]
                for child in inner:
                    if child.get("kind") == "EnumConstantDecl":
                        self.constants[child["id"]] = names
            stack.extend(inner)

    def functions(self, folder):
        """(function, file) of each function that is defined in a file of the folder."""
        for node in self.root.get("inner", ()):
            if node.get("kind") != "FunctionDecl" or node.get("inner", [{}])[-1].get("kind") != "CompoundStmt":
                continue
            span = self.span(node)
            if span and span[0].startswith(folder):
                yield node, span[0]


def behind_call(text, behind):
    """Clang tells the name's end of a macro with arguments; the use ends behind its parentheses."""
    opening = re.compile(r"\s*\(").match(text, behind)
    if not opening:
        return behind
    depth, at = 0, opening.end() - 1
    while at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at
    return behind
