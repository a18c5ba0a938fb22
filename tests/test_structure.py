"""Limits of the sources' structure, without exceptions."""

import ast
import functools
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = ("src/weft", "hw", "sim", "boards", "verif", "tools")
LONGEST = 75  # lines of an `elaborate`, without its docstring
LARGEST = 800  # lines of a file
LARGE = 500  # lines of a file that needs no reason
# By the file with more than `LARGE` lines, why it is one subject.
REASONS: dict[str, str] = {
    "hw/arith/ice40.py": "the MAC cells of a family, and the carry chains that only they share",
    "src/weft/network_core/descriptors.py": "the bits of all descriptors, and what each means",
}
WORDS = 4500  # of a page
# Pages with more words than `WORDS`. A page that has become shorter leaves this list.
LONG_PAGES = {"docs/network-core.md"}
# Only `weft.designs` asks a design, an IP core, a program or a report for its class.
KINDS = {
    "Config", "NetworkCoreConfig", "Ip", "NetworkIp", "Program", "NetworkCoreProgram",
    "ProductCoreReport", "NetworkCoreReport",
}
# Functions that still ask, with the number of calls. A function that asks no more leaves this list.
ASK_FOR_A_KIND = {
    "src/weft/network_core/config.py: NetworkCoreConfig.__post_init__": 1,
}
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


@functools.cache
def _tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def trees(root, *folders):
    """The syntax tree of each file."""
    return {path: _tree(path) for path in sources(root, *folders)}


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


def large_files(root, *folders, limit=LARGEST):
    """The lines of the files with more than ``limit``."""
    sizes = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8").count("\n")
        for path in sources(root, *folders)
    }
    return {name: size for name, size in sizes.items() if size > limit}


def repeated_classes(root, *folders):
    """``package: class`` of the public classes that a package has more than once."""
    found = Counter(
        f"{path.parent.relative_to(root).as_posix()}: {node.name}"
        for path, tree in trees(root, *folders).items()
        for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"
    )
    return [name for name, count in found.items() if count > 1]


def questions_of_kind(root, *folders):
    """``file: class.function`` with the number of its calls of ``isinstance`` with one of `KINDS`.

    A class counts by its name, also in a tuple, in a union, and as an attribute of a module.
    """
    found = Counter()

    def visit(node, where):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            where = [*where, node.name]
        call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if call and node.func.id in ("isinstance", "issubclass") and len(node.args) == 2:
            named = {
                getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node.args[1])
            }
            found[f"{name}: {'.'.join(where)}"] += bool(named & KINDS)
        for child in ast.iter_child_nodes(node):
            visit(child, where)

    for path, tree in trees(root, *folders).items():
        name = path.relative_to(root).as_posix()
        if name != "src/weft/designs.py":
            visit(tree, [])
    return dict(+found)


def long_pages(root):
    """The words of the pages with more than `WORDS`; notes and records may be long."""
    sizes = {
        page.relative_to(root).as_posix(): len(page.read_text(encoding="utf-8").split())
        for page in (root / "docs").rglob("*.md")
        if not {"notes", "results"} & set(page.relative_to(root / "docs").parts)
    }
    return {name: size for name, size in sizes.items() if size > WORDS}


def lost_modules(root, *folders):
    """``package: name`` of each module in the table of a package that the package has not."""
    found = []
    for path, tree in trees(root, *folders).items():
        text = ast.get_docstring(tree) or ""
        if path.name == "__init__.py" and re.search("^module +content$", text, re.M):
            names = re.findall(r"^(`\w+`(?:, `\w+`)*)  ", text, re.M)
            found += [
                f"{path.parent.relative_to(root).as_posix()}: {name}"
                for name in re.findall(r"\w+", " ".join(names))
                if not {name, f"{name}.py"} & {entry.name for entry in path.parent.iterdir()}
            ]
    return found


def lost_references(root, *folders):
    """``file: name`` of each ``weft.module.Name`` in backquotes without this module or name."""
    found = []
    for path in sources(root, *folders):
        names = re.findall(r"`weft\.([\w.]+)`", path.read_text(encoding="utf-8"))
        for name in names:
            first, *rest = name.split(".")
            place = root / first if first in ("hw", "sim", "boards") else root / "src/weft" / first
            while rest and any((place / (rest[0] + end)).exists() for end in ("", ".py")):
                place /= rest.pop(0)
            module = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            if not module.exists():  # a name of the package weft itself
                module, rest = root / "src/weft/__init__.py", [first]
            text = module.read_text(encoding="utf-8")
            if rest and not re.search(rf"(?<![.\w]){rest[0]}\b", text):
                found.append(f"{path.relative_to(root).as_posix()}: weft.{name}")
    return found


def test_no_elaborate_is_too_long():
    lengths = elaborates(ROOT)
    assert len(lengths) > 50
    assert {key: n for key, n in lengths.items() if n > LONGEST} == {}


def test_components_keep_no_state_outside_init():
    assert assignments_to_self(ROOT) == []


def test_no_file_is_too_large():
    assert large_files(ROOT, *CODE) == {}


def test_a_large_file_has_a_reason():
    assert set(large_files(ROOT, *CODE, "tests", limit=LARGE)) == set(REASONS)
    assert all(REASONS.values())


def test_only_designs_asks_for_a_kind_of_core():
    assert questions_of_kind(ROOT, *CODE) == ASK_FOR_A_KIND


def test_pages_are_short():
    assert set(long_pages(ROOT)) == LONG_PAGES


def test_a_package_has_each_class_name_once():
    assert repeated_classes(ROOT, *CODE) == []


def test_tables_of_modules_name_modules():
    assert lost_modules(ROOT, *CODE) == []


def test_references_lead_to_names():
    assert lost_references(ROOT, "src/weft", "hw", "sim", "boards", "verif") == []


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_prose_is_wrapped(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "#", "!["))]
    long = [line for line in lines if len(line) > WIDTH and " " in line.strip()]
    assert long == []


def left_by_merges(root, *places):
    """``file:line`` of each mark of an unfinished merge in text files."""
    found = []
    for path in (path for place in places for path in sorted(root.glob(place)) if path.is_file()):
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if line.startswith((b"<" * 7 + b" ", b">" * 7 + b" ")):
                found.append(f"{path.relative_to(root).as_posix()}:{number}")
    return found


def test_no_merge_is_left_unfinished():
    assert left_by_merges(ROOT, "*", *(f"{folder}/**/*" for folder in (*CODE, "docs"))) == []


def test_an_unfinished_merge_is_seen(tmp_path):
    (tmp_path / "one.md").write_text("a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n")
    assert left_by_merges(tmp_path, "*.md") == ["one.md:2", "one.md:6"]


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


def test_a_question_for_a_kind_is_seen_in_each_form(tmp_path):
    (tmp_path / "src/weft").mkdir(parents=True)
    for name in ("designs", "other"):
        (tmp_path / f"src/weft/{name}.py").write_text(
            "isinstance(x, Config)\n"
            "def one():\n    return isinstance(x, (int, ip.NetworkIp)) or isinstance(x, str)\n"
            "class Two:\n    def three(self):\n"
            "        return [isinstance(x, Ip | int), issubclass(x, Program)]\n"
        )
    assert questions_of_kind(tmp_path, "src") == {
        "src/weft/other.py: ": 1, "src/weft/other.py: one": 1, "src/weft/other.py: Two.three": 2,
    }


def test_a_long_page_is_seen(tmp_path):
    for name in ("page.md", "notes/page.md"):
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / name).write_text("word " * (WORDS + 1))
    assert long_pages(tmp_path) == {"docs/page.md": WORDS + 1}


def test_a_lost_name_is_seen(tmp_path):
    (tmp_path / "src/weft/room").mkdir(parents=True)
    (tmp_path / "src/weft/__init__.py").write_text("load = None\n")
    (tmp_path / "src/weft/room/__init__.py").write_text(
        '"""A room.\n\nmodule      content\n`one`, `two`  `weft.room.one.here`\n"""\n'
    )
    (tmp_path / "src/weft/room/one.py").write_text(
        '"""`weft.load`, `weft.room.one.here`, `weft.room.one.gone`, `weft.other.x`."""\nhere = 1\n'
    )
    assert lost_modules(tmp_path, "src/weft") == ["src/weft/room: two"]
    assert lost_references(tmp_path, "src/weft") == [
        "src/weft/room/one.py: weft.room.one.gone", "src/weft/room/one.py: weft.other.x",
    ]
