"""mutants.py - the mutants of the reference allocator: where, what, and under which name."""

import difflib
import hashlib
import os

import operators
from syntax import Tree


# What tests and assertions call, and nothing else does.
CHECKS = {"free_set_is_valid", "segment_is_mapped"}
CHECK_FILES = {"validity.c", "validity.h"}


def _is_check(function, file):
    return function in CHECKS or function.endswith("_violation") or file in CHECK_FILES


class Mutant:
    """A file of allocator/ with one mistake in it."""

    def __init__(self, file, function, operator, edits, source):
        self.file, self.function, self.operator = file, function, operator
        self.edits, self.source = sorted(edits, key=lambda e: e.first), source
        first = self.edits[0].first
        self.line = source.count("\n", 0, first) + 1
        self.column = first - (source.rfind("\n", 0, first) + 1) + 1
        self.name = ""

    def text(self):
        text = self.source
        for edit in reversed(self.edits):
            text = text[:edit.first] + edit.text + text[edit.behind:]
        return text

    def content(self):
        """What names it: the lines and the change, not where in the file they are."""
        parts = []
        for e in self.edits:
            start = self.source.rfind("\n", 0, e.first) + 1
            end = self.source.find("\n", e.behind)
            parts.append(" ".join(self.source[start:e.first].split()) + "\0" +
                         " ".join(self.source[e.first:e.behind].split()) + "\0" + e.text.strip() + "\0" +
                         " ".join(self.source[e.behind:end].split()))
        return "\1".join(parts)

    def diff(self):
        folder = "allocator/" + self.file
        return "".join(difflib.unified_diff(self.source.splitlines(True), self.text().splitlines(True),
                                            folder, folder, n=2))


def _name(mutants):
    """FILE:FUNCTION:OPERATOR:DIGEST; of equal ones in a function, the second is DIGEST-2."""
    seen = {}
    for m in mutants:
        stem = "%s:%s:%s" % (m.file, m.function, m.operator)
        digest = hashlib.sha1((stem + "\2" + m.content()).encode()).hexdigest()[:8]
        count = seen[stem, digest] = seen.get((stem, digest), 0) + 1
        m.name = "%s:%s%s" % (stem, digest, "-%d" % count if count > 1 else "")


def _locks_of_file(finder, file, found):
    """Per function that takes and gives back; else over the file, as where taking is a function itself."""
    made, loose = [], []
    for function, calls in found:
        for take, give in operators.LOCKS.items():
            pair = [c for c in calls if c[0] in (take, give)]
            if len({name for name, _ in pair}) == 2:
                made.append((function, pair))
            else:
                loose += [(function, take, c) for c in pair]
    for take in operators.LOCKS:
        pair = [c for _, of, c in loose if of == take]
        if len({name for name, _ in pair}) == 2:
            made.append(("file", pair))
    result = []
    for function, pair in made:
        edits = finder.without_lock(pair)
        if edits:
            result.append(Mutant(os.path.basename(file), function, "lock", edits, finder.source))
    return result


def of_tree(tree, folder, wanted):
    """All mutants of the functions that `tree` defines in the wanted files of the folder."""
    finders, locks, result = {}, {}, []
    for function, file in tree.functions(folder):
        base = os.path.basename(file)
        if base not in wanted or _is_check(function["name"], base) or os.path.dirname(file) != folder.rstrip("/"):
            continue
        finder = finders.setdefault(file, operators.Finder(tree, file))
        found, calls = finder.of_function(function)
        locks.setdefault(file, []).append((function["name"], calls))
        result += [Mutant(base, function["name"], operator, edits, finder.source)
                   for operator, edits in found]
    for file, found in locks.items():
        result += _locks_of_file(finders[file], file, found)
    return result


def of_allocator(folder, sources, ast_arguments):
    """All mutants of allocator/: of each source, and of each header with the first that includes it."""
    seen, result = set(), []
    headers = {f for f in os.listdir(folder) if f.endswith(".h")}
    for source in sources:
        tree = Tree(ast_arguments(source))
        wanted = {source} | (headers - seen)
        new = of_tree(tree, folder + "/", wanted)
        seen |= {m.file for m in new}
        result += new
    result.sort(key=lambda m: (m.file, m.edits[0].first, m.edits[0].behind, m.edits[0].text))
    result = _different(result)
    _name(result)
    return result


def _different(mutants):
    """Two operators can make the same text."""
    texts, result = set(), []
    for m in mutants:
        text = (m.file, hashlib.sha1(m.text().encode()).digest())
        if text not in texts:
            texts.add(text)
            result.append(m)
    return result


def in_sampling_order(mutants, seed):
    """Evenly over files and operators: one of each (file, operator) in turn, all of them in an order
    that the seed and their names make, so that a change to one file leaves the choice of the others."""
    def lot(*words):
        return hashlib.sha1("\0".join((str(seed), *words)).encode()).digest()

    strata = {}
    for m in mutants:
        strata.setdefault((m.file, m.operator), []).append(m)
    for members in strata.values():
        members.sort(key=lambda m: lot(m.name))
    result, turn = [], 0
    while strata:
        for key in sorted(strata, key=lambda k: lot(str(turn), *k)):
            result.append(strata[key].pop())
        strata = {key: members for key, members in strata.items() if members}
        turn += 1
    return result
