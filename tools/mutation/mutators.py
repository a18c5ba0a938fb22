"""Finds the mutants of a source; each changes one expression or statement in one line."""

import ast
import functools
import hashlib
from dataclasses import dataclass

__all__ = ["Mutant", "draw", "mutants"]

# Operators by node class: the text and its replacement.
OPERATORS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"), ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "&"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.And: ("and", "or"), ast.Or: ("or", "and"),
}
UNARY = {ast.Invert: "~", ast.Not: "not", ast.USub: "-"}


@dataclass(frozen=True)
class Mutant:
    """A part of one line and its replacement.

    Attributes
    ----------
    file : str
        Path below the root of the tree, with ``/``.
    line : int
        Number of the line, from 1.
    text : str
        The line without indentation.
    nth : int
        Number of earlier lines of the file with the same ``text``.
    start : int
        Index in ``text`` of the first replaced character.
    old, new : str
        The replaced text and its replacement.
    """

    file: str
    line: int
    text: str
    nth: int
    start: int
    old: str
    new: str

    @property
    def key(self) -> str:
        """10 hexadecimal digits; they depend on the line's text, but not on its number."""
        parts = self.file, self.text, self.nth, self.start, self.old, self.new
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:10]

    @property
    def changed(self) -> str:
        """The line of the mutant without indentation."""
        return self.text[: self.start] + self.new + self.text[self.start + len(self.old):]

    def apply(self, source: str) -> str | None:
        """``source`` with the changed line; None if ``source`` does not have the line."""
        lines, seen = source.split("\n"), 0
        for index, line in enumerate(lines):
            if line.strip() != self.text:
                continue
            if seen == self.nth:
                indent = line[: len(line) - len(line.lstrip())]
                return "\n".join([*lines[:index], indent + self.changed, *lines[index + 1:]])
            seen += 1
        return None

    def valid(self, source: str) -> bool:
        """Whether the mutant applies to ``source``, compiles, and changes its syntax tree."""
        changed = self.apply(source)
        try:
            return changed is not None and ast.dump(ast.parse(changed)) != _meaning(source)
        except SyntaxError:
            return False


@functools.cache
def _meaning(source):
    return ast.dump(ast.parse(source))


def mutants(file: str, source: str) -> list[Mutant]:
    """All mutants of a source; some may not be `Mutant.valid`."""
    visitor = _Visitor(file, source)
    visitor.visit(ast.parse(source))
    return list(dict.fromkeys(visitor.found))


def draw(
    sources: dict[str, str], seed: int, count: int, places: dict[str, range] | None = None
) -> list[Mutant]:
    """``count`` mutants of sources by path, at most one for each line, in an order set by ``seed``.

    The rank of a line depends only on the seed and the line: changes of other lines do not affect
    it. ``places`` has the lines that are changed, by path; None: all lines of all sources.
    """
    def rank(*parts):
        return hashlib.sha256(repr((seed, *parts)).encode()).digest()

    lines = {}
    for file, source in sources.items():
        for mutant in mutants(file, source):
            if places is not None and mutant.line not in places.get(file, ()):
                continue
            lines.setdefault((file, mutant.text, mutant.nth), []).append(mutant)
    drawn = []
    for place in sorted(lines, key=lambda place: rank(*place)):
        if len(drawn) == count:
            break
        for mutant in sorted(lines[place], key=lambda mutant: rank(mutant.key)):
            if mutant.valid(sources[mutant.file]):
                drawn.append(mutant)
                break
    return drawn


class _Visitor(ast.NodeVisitor):
    """Collects mutants in ``found``; skips texts, annotations and raised errors."""

    def __init__(self, file, source):
        self.file, self.found = file, []
        self.lines = source.split("\n")
        stripped, count = [line.strip() for line in self.lines], {}
        self.nth = []
        for text in stripped:
            self.nth.append(count.setdefault(text, 0))
            count[text] += 1

    def _add(self, line, start, end, new):
        """Replace the bytes from ``start`` to ``end`` of a line by ``new``."""
        whole = self.lines[line - 1]
        data = whole.encode()
        first = len(data[:start].decode()) - (len(whole) - len(whole.lstrip()))
        old = data[start:end].decode()
        self.found.append(
            Mutant(self.file, line, whole.strip(), self.nth[line - 1], first, old, new)
        )

    def _replace(self, node, *forms):
        """Replace a node of one line; ``{}`` in a form is its text."""
        if node.lineno == node.end_lineno:
            old = self.lines[node.lineno - 1].encode()[node.col_offset:node.end_col_offset]
            for form in forms:
                self._add(
                    node.lineno, node.col_offset, node.end_col_offset,
                    form.replace("{}", old.decode()),
                )

    def _operator(self, left, right, operator):
        """Replace the operator between two nodes."""
        old, new = OPERATORS.get(type(operator), ("", ""))
        same = left.end_lineno == right.lineno
        end = right.col_offset if same else None
        gaps = [(left.end_lineno, left.end_col_offset, end)]
        gaps += [] if same else [(right.lineno, 0, right.col_offset)]
        for line, first, last in gaps:
            gap = self.lines[line - 1].encode()[first:last].partition(b"#")[0]
            at = gap.find(old.encode())
            if old and at >= 0:
                self._add(line, first + at, first + at + len(old), new)
                return

    def visit_BinOp(self, node):
        texts = (ast.JoinedStr, ast.List, ast.Tuple)
        if not any(
            isinstance(side, texts) or isinstance(getattr(side, "value", None), str)
            for side in (node.left, node.right)
        ):
            self._operator(node.left, node.right, node.op)
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._operator(left, right, node.op)
        self.generic_visit(node)

    def visit_Compare(self, node):
        sides = [node.left, *node.comparators]
        for left, right, operator in zip(sides, node.comparators, node.ops, strict=False):
            self._operator(left, right, operator)
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        sign = UNARY.get(type(node.op))
        if sign and node.lineno == node.operand.lineno:
            self._add(node.lineno, node.col_offset, node.col_offset + len(sign), "")
        self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value))
        elif isinstance(node.value, int):
            low = node.value - 1
            self._replace(node, str(node.value + 1), str(low) if low >= 0 else f"({low})")

    def visit_If(self, node):
        self._replace(node.test, "not ({})")
        self.generic_visit(node)

    def visit_IfExp(self, node):
        self._replace(node.test, "(not ({}))")
        self.generic_visit(node)

    def visit_comprehension(self, node):
        for test in node.ifs:
            self._replace(test, "(not ({}))")
        self.generic_visit(node)

    def visit_Call(self, node):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in {"If", "Elif"} and len(node.args) == 1:
            self._replace(node.args[0], "({}) == 0")
        if name == "eq" and len(node.args) == 1:
            self._replace(node.args[0], "0", "~({})")
        self.generic_visit(node)

    def visit_Return(self, node):
        if node.value is not None and not isinstance(node.value, ast.Name):
            self._replace(node.value, "None")
        self.generic_visit(node)

    def visit_Slice(self, node):
        for bound in (node.lower, node.upper):
            if bound is not None and not isinstance(bound, ast.Constant):
                self._replace(bound, "({}) + 1", "({}) - 1")
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        self._replace(node, "pass")
        if isinstance(node.value, ast.List):  # statements of m.d.comb, or words of a list
            for part in node.value.elts:
                if isinstance(part, ast.Call):
                    self._replace(part, "[]")
        self.generic_visit(node)

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Call):
            self._replace(node, "pass")
        self.generic_visit(node)

    def visit_Break(self, node):
        self._replace(node, "pass")

    def visit_Continue(self, node):
        self._replace(node, "pass")

    def visit_Assign(self, node):
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if "__all__" not in names:
            self.generic_visit(node)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node):
        """Visit defaults and body, not annotations or decorators."""
        for part in [*node.args.defaults, *node.args.kw_defaults, *node.body]:
            if part is not None:
                self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        for part in node.body:
            self.visit(part)

    def visit_Raise(self, node):
        """Skip errors and their texts."""

    visit_JoinedStr = visit_Assert = visit_Import = visit_ImportFrom = visit_Raise
