"""Limits of the sources' structure, without exceptions."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = ("src/weft", "hw", "sim", "boards", "verif", "tools")
LONGEST = 75  # lines of an `elaborate`, without its docstring
LARGEST = 800  # lines of a file
# Pages with sentences that a tool fills with names and figures of any length.
GENERATED = ROOT / "docs" / "results"
PROSE = sorted(
    path for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if GENERATED not in path.parents
)
WIDTH = 100




def sources(root, *folders):
    """The Python files in folders, but for files that a kit copies."""
    paths = (path for folder in folders for path in sorted((root / folder).rglob("*.py")))
    return [path for path in paths if "files" not in path.parts]


def trees(root, *folders):
    """The syntax tree of each file."""
    return {
        path: ast.parse(path.read_text(encoding="utf-8")) for path in sources(root, *folders)
    }


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


def large_files(root, *folders):
    """The lines of the files with more than `LARGEST`."""
    sizes = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8").count("\n")
        for path in sources(root, *folders)
    }
    return {name: size for name, size in sizes.items() if size > LARGEST}


def repeated_classes(root, *folders):
    """``package: class`` of the public classes that a package has more than once."""
    found = Counter(
        f"{path.parent.relative_to(root).as_posix()}: {node.name}"
        for path, tree in trees(root, *folders).items()
        for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"
    )
    return [name for name, count in found.items() if count > 1]


def test_no_elaborate_is_too_long():
    lengths = elaborates(ROOT)
    assert len(lengths) > 50
    assert {key: n for key, n in lengths.items() if n > LONGEST} == {}


def test_components_keep_no_state_outside_init():
    assert assignments_to_self(ROOT) == []


def test_no_file_is_too_large():
    assert large_files(ROOT, *CODE) == {}


def test_a_package_has_each_class_name_once():
    assert repeated_classes(ROOT, *CODE) == []


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_prose_is_wrapped(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "#", "!["))]
    long = [line for line in lines if len(line) > WIDTH and " " in line.strip()]
    assert long == []


def test_each_limit_sees_what_breaks_it(tmp_path):
    body = "\n".join(["        x = 1"] * 80)
    (tmp_path / "hw").mkdir()
    (tmp_path / "hw/one.py").write_text(
        f"class Twice:\n    def elaborate(self, platform):\n{body}\n        self.y = 2\n"
    )
    (tmp_path / "hw/two.py").write_text("class Twice:\n    pass\n" + "\n" * 800)
    assert elaborates(tmp_path) == {("hw/one.py", "Twice"): 82}
    assert assignments_to_self(tmp_path) == ["hw/one.py:83"]
    assert repeated_classes(tmp_path, "hw") == ["hw: Twice"]
    assert large_files(tmp_path, "hw") == {"hw/two.py": 802}
