"""operators.py - what is done to a program to make a mutant: one small mistake of those that are made
when an allocator is written. Each operator is a function from a node of the syntax tree to edits."""

import re

from syntax import behind_call

RELATIONAL = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"),
              "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<", "&": "|",
              "|": "&", "^": "&", "+=": "-=", "-=": "+=", "*=": "/=", "|=": "&=", "&=": "|=",
              "<<=": ">>=", ">>=": "<<=", "++": "--", "--": "++"}
LOGICAL = {"&&": "||", "||": "&&"}
# Taken and given back; without both there is no lock at all.
LOCKS = {"pthread_mutex_lock": "pthread_mutex_unlock", "device_enter": "device_leave",
         "heap_try_enter": "heap_leave", "heap_close": "heap_leave", "lock": "unlock"}
ANSWERS = {"heap_try_enter": "true"}  # of a lock that can be refused: what it says when there is none
CUDA_CALL = re.compile(r"^(cuda|cu)[A-Z]")
EVENT_CALL = re.compile(r"Event|Synchronize|StreamQuery")
EXPRESSIONS = {"CallExpr", "BinaryOperator", "CompoundAssignOperator", "UnaryOperator", "AtomicExpr",
               "StmtExpr", "ParenExpr"}


class Edit:
    """Bytes first..behind of a file become `text`."""

    def __init__(self, first, behind, text):
        self.first, self.behind, self.text = first, behind, text


class Finder:
    """All edits of one function, as (operator, [Edit...])."""

    def __init__(self, tree, file):
        self.tree, self.file, self.source = tree, file, tree.text(file)
        self.found = []
        self.assertions = [(m.start(), behind_call(self.source, m.end()))
                           for m in re.finditer(r"\bGMD_ASSERT\w*(?=\()", self.source)]

    def is_asserted(self, edit):
        """In an assertion: it is a judge, no part of what is judged."""
        return any(first < edit.behind and edit.first < behind for first, behind in self.assertions)

    def span(self, node):
        span = self.tree.span(node) if node else None
        return span if span and span[0] == self.file else None

    def text_of(self, node):
        span = self.span(node)
        return self.source[span[1]:span[2]] if span else ""

    def add(self, operator, *edits):
        if any(self.is_asserted(e) for e in edits):
            return
        if all(self.source[e.first:e.behind] != e.text for e in edits):
            self.found.append((operator, list(edits)))

    def replace(self, operator, node, text):
        _, first, behind, _ = self.span(node)
        self.add(operator, Edit(first, behind, text))

    def between(self, left, right, sign):
        """Where the sign of a binary operator stands."""
        a, b = self.span(left), self.span(right)
        if not a or not b:
            return None
        at = self.source.find(sign, a[2], b[1])
        return at if at >= 0 else None

    # --- the operators -------------------------------------------------------------------------

    def binary(self, node):
        sign, (left, right) = node["opcode"], node["inner"]
        at = self.between(left, right, sign)
        if at is None:
            return
        for other in RELATIONAL.get(sign, ()):
            self.add("relational", Edit(at, at + len(sign), other))
        if sign in ARITHMETIC:
            self.add("arithmetic", Edit(at, at + len(sign), ARITHMETIC[sign]))
        if sign in LOGICAL:
            self.add("logical", Edit(at, at + len(sign), LOGICAL[sign]))
            self.replace("operand", node, self.text_of(left))
            self.replace("operand", node, self.text_of(right))

    def unary(self, node):
        sign, span = node["opcode"], self.span(node)
        if sign in ("++", "--"):
            at = span[2] - 2 if node.get("isPostfix") else span[1]
            if self.source[at:at + 2] == sign:
                self.add("arithmetic", Edit(at, at + 2, ARITHMETIC[sign]))
        elif sign == "!" and self.source[span[1]] == "!":
            self.add("condition", Edit(span[1], span[1] + 1, ""))
        elif sign == "~" and self.source[span[1]] == "~":
            self.add("arithmetic", Edit(span[1], span[1] + 1, ""))

    def literal(self, node):
        text = self.text_of(node)
        if text in ("true", "false"):
            self.replace("boolean", node, "false" if text == "true" else "true")
        elif text and text != "NULL" and not re.search(r"[()\"']", text):
            self.replace("off-by-one", node, "(%s + 1)" % text)
            self.replace("off-by-one", node, "(%s - 1)" % text)

    def member(self, node):
        """Another field of the same type of the same struct: the wrong list, the wrong counter."""
        mine = node.get("referencedMemberDecl")
        ids = self.tree.fields.get(mine, ())
        if not ids:
            return
        name, kind = self.tree.field_of[mine]
        turned = ids[ids.index(mine) + 1:] + ids[:ids.index(mine)]
        behind = self.span(node)[2]
        if not name or self.source[behind - len(name):behind] != name:
            return
        for other in turned:
            other_name, other_kind = self.tree.field_of[other]
            if other_kind == kind and other_name:
                self.add("wrong-list", Edit(behind - len(name), behind, other_name))
                return

    def constant(self, node):
        referenced = node.get("referencedDecl", {})
        names = self.tree.constants.get(referenced.get("id"))
        if names and len(names) > 1 and self.text_of(node) == referenced.get("name"):
            other = names[(names.index(referenced["name"]) + 1) % len(names)]
            self.replace("wrong-list", node, other)

    def call(self, node):
        name, arguments = self.callee(node), node["inner"][1:]
        if CUDA_CALL.match(name) and self.span(node):
            operator = "event" if EVENT_CALL.search(name) else "device-call"
            self.replace(operator, node, "0")
        for left, right in zip(arguments, arguments[1:]):
            a, b = self.span(left), self.span(right)
            same = left.get("type", {}).get("qualType") == right.get("type", {}).get("qualType")
            if a and b and same and not a[3] and not b[3]:
                self.add("swap", Edit(a[1], a[2], self.source[b[1]:b[2]]),
                         Edit(b[1], b[2], self.source[a[1]:a[2]]))

    def condition(self, node):
        """Never so; and the other way round, where no relational mutant says that."""
        index = 2 if node["kind"] == "ForStmt" else 0
        asked = node["inner"][index] if index < len(node["inner"]) else None
        if not asked or not self.span(asked):
            return
        text = self.text_of(asked)
        if node["kind"] != "ForStmt":
            self.replace("condition", asked, "false")
        if asked.get("opcode") not in RELATIONAL and asked.get("opcode") != "!":
            self.replace("condition", asked, "!(%s)" % text)

    def statement(self, node):
        span = self.span(node)
        if not span or node["kind"] not in EXPRESSIONS | {"BreakStmt", "ContinueStmt"}:
            return
        end = self.source.find(";", span[2])
        if end < 0 or self.source[span[2]:end].strip():
            return
        lines = self.source[span[1]:end].count("\n")
        self.add("statement", Edit(span[1], end, "\n" * lines))

    # --- the walk ------------------------------------------------------------------------------

    def callee(self, node):
        inner = node["inner"][0]
        while inner.get("inner") and inner.get("kind") in ("ImplicitCastExpr", "ParenExpr"):
            inner = inner["inner"][0]
        return inner.get("referencedDecl", {}).get("name", "")

    def walk(self, node, is_statement=False):
        kind, span = node.get("kind"), self.span(node)
        inner = [child for child in node.get("inner", ())]
        if kind == "CallExpr":
            self.lock_calls.append((self.callee(node), node))
        if is_statement:
            self.statement(node)
        if span and span[3]:
            self.literal_of_macro(node)
            return
        if span:
            self.visit(kind, node)
        bodies = _bodies(kind, inner)
        for index, child in enumerate(inner):
            if child:
                self.walk(child, index in bodies)

    def literal_of_macro(self, node):
        while node.get("kind") in ("ParenExpr", "ImplicitCastExpr", "ConstantExpr") and node.get("inner"):
            node = node["inner"][0]
        if node.get("kind") in ("IntegerLiteral", "BinaryOperator"):
            self.literal(node)

    def visit(self, kind, node):
        if kind in ("BinaryOperator", "CompoundAssignOperator"):
            self.binary(node)
        elif kind == "UnaryOperator":
            self.unary(node)
        elif kind == "IntegerLiteral":
            self.literal(node)
        elif kind == "MemberExpr":
            self.member(node)
        elif kind == "DeclRefExpr":
            self.constant(node)
        elif kind == "CallExpr":
            self.call(node)
        elif kind in ("IfStmt", "WhileStmt", "ForStmt", "ConditionalOperator"):
            self.condition(node)

    def of_function(self, function):
        self.found, self.lock_calls = [], []
        self.walk(function["inner"][-1])
        return self.found, [(name, node) for name, node in self.lock_calls
                            if name in LOCKS or name in LOCKS.values()]

    def without_lock(self, calls):
        """The edits that leave out those calls of locks."""
        edits = []
        for name, node in calls:
            span = self.span(node)
            if not span:
                return None
            edits.append(Edit(span[1], span[2], ANSWERS.get(name, "(void)0")))
        return edits


def _bodies(kind, inner):
    """Which children are statements that can be left out."""
    if kind in ("CompoundStmt", "CaseStmt", "DefaultStmt"):
        return range(len(inner))
    if kind == "IfStmt":
        return range(1, len(inner))
    if kind in ("WhileStmt", "ForStmt"):
        return range(len(inner) - 1, len(inner))
    return range(1) if kind == "DoStmt" else ()
