"""Write ``docs/readability.md``: how well the sources read, in numbers, beside other trees."""

import argparse
import ast
import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

__all__ = ["CODE", "assignments_to_self", "class_names", "elaborates", "main", "measure", "sources"]

ROOT = Path(__file__).resolve().parent.parent
PAGE, RECORD = ROOT / "docs" / "readability.md", ROOT / "docs" / "readability.json"
CODE = "src", "hw", "sim", "boards", "verif", "tools"
LONGEST = 75     # lines of an `elaborate`
LARGE = 300      # lines of a file
DUPLICATE = 6    # lines in a row that two files share
# Phrases that make a sentence a riddle: the reader must know more than it says.
RIDDLES = re.compile(
    r"\b(what (is|was|it)|those of|that of|is (?-i:none)|nobody|whoever|whatever|but for)\b", re.I
)
# An attribute's description has a shape where it names bits, a pulse, a stream, a layout, or code.
SHAPE = re.compile(r"\d|\bbits?\b|\bbytes?\b|pulse|stream|flag|`|\bshape|\bword", re.I)

TEXT = """\
# Readability

Numbers on the text of the sources. `make readability` counts again. `tests/test_structure.py` holds
the limits that a change must keep.

{table}

* *Documented*: public classes, functions and methods with a docstring; methods that a base class
  documents (`elaborate`, `__init__`) are not counted.
* *Attribute lines with a shape*: entries under "Attributes" of the components in `hw` that say a
  width, a layout, a stream or a pulse.
* *Riddles*: phrases like "what is", "those of", "nobody" and "but for", in docstrings, comments and
  pages, for each thousand lines.
* *Duplicated lines*: lines in a run of {duplicate} or more that another file of the sources has
  too, without imports.

The column `amaranth` is Amaranth 0.5 as PyPI has it, with its standard library and without its
tests. Its assignments to `self` include the language and the simulator. amaranth-soc and glasgow
are **not measured**: PyPI does not have their sources. With a checkout, a command adds a column:

```
make readability ARGS="--other amaranth-soc ../amaranth-soc amaranth_soc"
make readability ARGS="--other glasgow ../glasgow software/glasgow"
```
"""


def sources(root, *folders):
    """The Python files below ``folders``, in order."""
    return sorted(path for folder in folders for path in (root / folder).rglob("*.py"))


def trees(root, *folders):
    """``file -> syntax tree``."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sources(root, *folders)}


def class_names(root, code=CODE):
    """``name -> files`` of the public classes at the top of a file."""
    found = defaultdict(list)
    for path, tree in trees(root, *code).items():
        if path.is_relative_to(root / "src/weft/kit/files"):
            continue  # a kit stands alone
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(root).as_posix())
    return found


def elaborates(root, hardware="hw"):
    """``(file, class) -> lines`` of each ``elaborate`` in ``hardware``, without its docstring."""
    found = {}
    for path, tree in trees(root, hardware).items():
        for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for node in cls.body:
                if isinstance(node, ast.FunctionDef) and node.name == "elaborate":
                    lines = node.end_lineno - node.lineno + 1
                    text = ast.get_docstring(node)
                    lines -= len(text.splitlines()) if text else 0
                    found[path.relative_to(root).as_posix(), cls.name] = lines
    return found


def assignments_to_self(root, hardware="hw"):
    """``file:line`` of each assignment to an attribute of ``self``, outside __init__."""
    found = []
    for path, tree in trees(root, hardware).items():
        for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for method in cls.body:
                if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                    found += [
                        f"{path.relative_to(root).as_posix()}:{node.lineno}"
                        for node in ast.walk(method)
                        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                        and isinstance(node.value, ast.Name) and node.value.id == "self"
                    ]
    return found


def _documented(root, code):
    """Public classes and functions, and how many of them have a docstring."""
    total = done = 0
    for tree in trees(root, *code).values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                if node.name.startswith("_") or node.name == "elaborate":
                    continue
                total += 1
                done += ast.get_docstring(node) is not None
    return total, done


def _attributes(root, hardware):
    """Entries under "Attributes" in ``hardware``, and how many of them name a shape."""
    total = shaped = 0
    for tree in trees(root, hardware).values():
        for node in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            parts = re.split(r"^(\w+)\n-+\n", ast.get_docstring(node) or "", flags=re.M)
            for name, body in zip(parts[1::2], parts[2::2], strict=True):
                if name == "Attributes":
                    entries = re.split(r"^(?=\S)", body, flags=re.M)
                    entries = [entry for entry in entries if ":" in entry.split("\n")[0]]
                    total += len(entries)
                    shaped += sum(bool(SHAPE.search(entry.partition(":")[2])) for entry in entries)
    return total, shaped


def _riddles(root, code):
    """Riddles for each thousand lines of Python and Markdown."""
    paths = [*sources(root, *code), *sorted((root / "docs").glob("*.md")), *root.glob("README.md")]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    lines = sum(len(text.splitlines()) for text in texts)
    return 1000 * sum(len(RIDDLES.findall(text)) for text in texts) / lines


def _duplicated(root, code):
    """Lines in runs of DUPLICATE that more than one file has."""
    where, held = defaultdict(set), {}
    for path in sources(root, *code):
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
        lines = [x for x in lines if len(x) > 3 and not x.startswith(("import ", "from ", "#"))]
        held[path] = lines
        for n in range(len(lines) - DUPLICATE + 1):
            where[tuple(lines[n : n + DUPLICATE])].add(path)
    count = 0
    for lines in held.values():
        shared = set()
        for n in range(len(lines) - DUPLICATE + 1):
            if len(where[tuple(lines[n : n + DUPLICATE])]) > 1:
                shared.update(range(n, n + DUPLICATE))
        count += len(shared)
    return count


def _lines(root, *folders):
    return sum(len(p.read_text(encoding="utf-8").splitlines()) for p in sources(root, *folders))


def measure(root, code=CODE, hardware="hw") -> dict:
    """``name -> number`` of the tree at ``root``; ``hardware`` is the folder of its hardware."""
    documented, attributes = _documented(root, code), _attributes(root, hardware)
    lengths = elaborates(root, hardware).values()
    lines, tests = _lines(root, *code), _lines(root, "tests")
    large = Counter(
        len(path.read_text(encoding="utf-8").splitlines()) > LARGE
        for path in sources(root, *code, "tests")
    )
    shaped = f"{attributes[1] / attributes[0]:.0%} of {attributes[0]}" if attributes[0] else "-"
    return {
        "public classes and functions documented": f"{documented[1] / documented[0]:.0%}",
        "attribute lines with a shape": shaped,
        "longest `elaborate`, lines": f"{max(lengths)}",
        f"`elaborate` over {LONGEST} lines": f"{sum(n > LONGEST for n in lengths)}",
        "assignments to `self` outside `__init__`, in the hardware":
            f"{len(assignments_to_self(root, hardware))}",
        "class names that exist twice":
            f"{sum(len(files) > 1 for files in class_names(root, code).values())}",
        f"files over {LARGE} lines": f"{large[True]} of {large.total()}",
        "riddles for each thousand lines": f"{_riddles(root, code):.1f}",
        "duplicated lines": f"{_duplicated(root, code):,}",
        "lines of code": f"{lines:,}",
        "lines of tests for each line of code": f"{tests / lines:.2f}" if tests else "-",
    }


def page(record) -> str:
    """The page for ``record[tree][name]``, whose first trees are ``before`` and ``now``."""
    names = [*record["now"]]
    heads = {"before": "before the redesign"}
    columns = sorted(record, key=lambda tree: (tree not in ("before", "now"), tree))
    lines = [
        "| number | " + " | ".join(heads.get(tree, tree) for tree in columns) + " |",
        "|---" + "|---:" * len(columns) + "|",
        *(f"| {name} | " + " | ".join(record[tree].get(name, "-") for tree in columns) + " |"
          for name in names),
    ]
    return TEXT.format(table="\n".join(lines), duplicate=DUPLICATE)


def main(arguments=None) -> int:
    """Measure this tree and other ones that the arguments name, and write the page; 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--other", nargs=3, metavar=("NAME", "TREE", "FOLDER"),
        help="measure another project too: the sources in FOLDER of TREE",
    )
    args = parser.parse_args(arguments)
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    record["now"] = measure(ROOT)
    if args.other:
        name, tree, folder = args.other
        record[name] = measure(Path(tree), (folder,), folder)
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(record), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
