"""Records of measurements: what they hold, what their digest covers, and their pages."""

import json
import re
import subprocess

import pytest

from tools import results

TABLE = """\
| name | LUT | fmax | share | path |
|---|---:|---:|---:|---|
| a | 1,200 | 99.5 MHz | 3.0% | `x` to `y` |
| b \\| c | - | 101.0 MHz | 12.5% | - |
"""


@pytest.fixture
def tree(tmp_path):
    """A project with a tool that imports a module, and a file of data beside that."""
    for name, text in {
        "tools/bench.py": "from weft.adder import add\nfrom weft import other\n",
        "src/weft/__init__.py": "def load():\n    from weft.lazy import read\n    return read\n",
        "src/weft/adder.py": "def add(a, b):\n    return a + b\n",
        "src/weft/other.py": "import numpy\n\nif TYPE_CHECKING:\n    from weft.lazy import read\n",
        "src/weft/lazy.py": "def read():\n    pass\n",
        "src/weft/sums.json": "[]\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def forget():
    """Read the contents of files again."""
    for function in (results._imports, results._data, results._lines):
        function.cache_clear()


def saved(tree):
    return results.save(
        "sums", [results.table(TABLE, title="Sums", about="All sums.")], title="Sums of bytes",
        command="make sums", about="Of bytes.", of=["tools.bench"], root=tree,
    )


def test_a_table_has_values_with_units():
    table = results.table(TABLE)
    assert table["columns"] == [
        {"name": "name"}, {"name": "LUT", "unit": "", "decimals": 0},
        {"name": "fmax", "unit": "MHz", "decimals": 1},
        {"name": "share", "unit": "%", "decimals": 1},
        {"name": "path"},
    ]
    assert table["rows"] == [
        ["a", 1200, 99.5, 3.0, "`x` to `y`"], [r"b \| c", None, 101.0, 12.5, "-"],
    ]


def test_the_page_shows_the_values_that_were_measured(tree):
    text = saved(tree).read_text()
    rows = [line for line in TABLE.splitlines() if not line.startswith("|--")]
    assert [line for line in text.splitlines() if line in rows] == rows
    assert "# Sums of bytes\n\n`make sums` measured this at " in text
    assert "Its sources are the same since then.\n\nOf bytes.\n\n## Sums\n\nAll sums.\n" in text
    line = "| [Sums of bytes](results/sums.md) | `make sums` |"
    assert line in (tree / "docs" / "results.md").read_text()


def test_a_record_says_when_and_with_what(tree, monkeypatch):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "tree: first"]):
        subprocess.run([*git, *command], cwd=tree, check=True)
    saved(tree)
    record = results.load("sums", tree)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tree, capture_output=True, text=True)
    assert head.stdout.startswith(record["commit"]) and len(record["commit"]) == 10
    assert record["digest"] == results.digest(["tools.bench"], tree)
    assert "amaranth" in record["tools"] and record["of"] == ["tools.bench"]
    # A file that is no source of this record.
    (tree / "src/weft/lazy.py").write_text("def read():\n    return 1\n")
    assert results.stamp(["tools.bench"], tree)["commit"] == record["commit"]
    (tree / "src/weft/adder.py").write_text("def add(a, b):\n    return b + a\n")
    assert results.stamp(["tools.bench"], tree)["commit"] == f"{record['commit']}, with changes"


def test_a_record_has_the_version_of_a_framework_that_its_sources_import(tree, monkeypatch):
    versions = {"jax": "1.2", "torch": "3.4"}
    monkeypatch.setattr(results.importlib.metadata, "version", lambda name: versions.get(name, "0"))
    assert not {*results.stamp(["tools.bench"], tree)["tools"]} & {*versions}
    with (tree / "tools/bench.py").open("a") as file:
        file.write("def measure():\n    import torch\n")
    forget()
    tools = results.stamp(["tools.bench"], tree)["tools"]
    assert tools["torch"] == "3.4" and "jax" not in tools


@pytest.mark.parametrize("name, changes", [
    ("tools/bench.py", True), ("src/weft/adder.py", True), ("src/weft/other.py", True),
    ("src/weft/sums.json", True), ("src/weft/__init__.py", True),
    ("src/weft/lazy.py", False),  # only if somebody asks the package for it
])
def test_a_change_of_a_source_is_told(tree, name, changes):
    saved(tree)
    with (tree / name).open("a") as file:
        file.write("NEW = 1\n")
    forget()
    results.write(tree)
    said = "have changed" if changes else "are the same"
    for page in ("docs/results.md", "docs/results/sums.md"):
        assert said in (tree / page).read_text()


def hardware(tree, **fields):
    """The page and its line in the list, of a record of hardware whose sources have changed."""
    results.save(
        "area", [results.table(TABLE)], title="Area", command="make area", about="",
        of=["tools.bench"], root=tree, designs=fields.pop("designs", None),
    )
    page = tree / "docs" / "results" / "area.md"
    assert "Its sources are the same since then.\n" in page.read_text()
    with (tree / "tools/bench.py").open("a") as file:
        file.write("NEW = 1\n")
    forget()
    if "compared" in fields:
        compared = {"commit": "12345678", "date": "2026-01-02", "designs": [], "conditions": [],
                    "gone": [], "unknown": [], "tools": []} | fields["compared"]
        compared.setdefault("digest", results.digest(["tools.bench"], tree))
        results.store("area", results.load("area", tree) | {"compared": compared}, tree)
    results.write(tree)
    [sentence] = re.findall(r"Its sources have changed since then\. (.*)", page.read_text())
    [line] = re.findall(r"\| have changed; (.*) \|", (tree / "docs" / "results.md").read_text())
    return sentence, line


DESIGNS = {name: {"design": name, "conditions": "1"} for name in "abc"}


@pytest.mark.parametrize("fields, sentence, line", [
    ({}, "The record has no digests of its designs: they cannot be compared.",
     "no digests of its designs"),
    ({"designs": DESIGNS}, "Its designs were not compared.", "its designs were not compared"),
    ({"designs": DESIGNS, "compared": {}},
     "3 of its 3 designs are the same, compared at 12345678.",
     "3 of 3 designs are the same, compared at 12345678"),
    ({"designs": DESIGNS, "compared": {"digest": "of another day"}},
     ("3 of its 3 designs are the same, compared at 12345678."
      " The sources have changed again since this comparison."),
     "3 of 3 designs are the same, compared at 12345678; not compared since"),
    ({"designs": DESIGNS, "compared": {
        "designs": ["a"], "conditions": ["a", "b"], "gone": ["c"], "unknown": ["d"],
        "tools": ["yosys 2"],
    }},
     ("1 of its 3 designs are the same, compared at 12345678. Other designs: a."
      " Other conditions: a, b. Other tools: yosys 2. Designs that no source makes today: c."
      " Designs without a digest in the record: d."),
     ("1 of 3 designs are the same, compared at 12345678; other designs: 1; other conditions: 2;"
      " other tools: 1")),
])
def test_the_page_says_what_is_known_of_the_designs(tree, fields, sentence, line):
    assert hardware(tree, **fields) == (sentence, line)


def test_the_page_says_what_a_comparison_found_with_equal_sources(tree):
    """A board may have been built before the sources changed that the record was written with."""
    hardware(tree, designs=DESIGNS, compared={"designs": ["b"]})
    record = results.load("area", tree)
    results.store("area", record | {"digest": results.digest(record["of"], tree)}, tree)
    results.write(tree)
    assert (
        "Its sources are the same since then. 2 of its 3 designs are the same, compared at"
        " 12345678. Other designs: b.\n"
    ) in (tree / "docs" / "results" / "area.md").read_text()


def test_comments_and_blank_lines_are_no_change(tree):
    before = results.digest(["tools.bench"], tree)
    path = tree / "src/weft/adder.py"
    path.write_text("# A reason.\n\n" + path.read_text().replace("\n", "  \n", 1))
    forget()
    assert results.digest(["tools.bench"], tree) == before


def test_a_record_of_another_command_is_stamped(tree, capsys):
    (tree / "results").mkdir()
    path = tree / "results" / "bench.json"
    path.write_text(json.dumps({
        "title": "Bench", "command": "make bench", "page": "speed", "of": ["tools.bench"],
        "digest": "", "commit": "", "date": "2020-01-01", "tools": {},
    }))
    results.write(tree)
    page = tree / "docs" / "results.md"
    text = page.read_text()
    assert "2020-01-01,  | have changed; no digests of its designs |" in text
    assert "results/speed\n" in text
    assert results.main(["bench"], tree) == 0
    assert "| are the same |" in page.read_text() and "2020-01-01" not in page.read_text()
    assert not (tree / "docs" / "results" / "bench.md").exists()
    # What was measured has its digests; a comparison is of the record before.
    (tree / "results" / "speed.json").write_text(json.dumps([
        {"name": "one", "digests": {"design": "1"}}, {"name": "one", "digests": {"design": "2"}},
        {"name": "two"},
    ]))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"compared": {}}))
    assert results.main(["bench"], tree) == 0
    record = results.load("bench", tree)
    assert record["designs"] == {"one": {"design": "2"}} and "compared" not in record
    assert results.main(["other"], tree) == 2
    assert capsys.readouterr().err == "a record to stamp must be one of bench, not other\n"


def test_the_pages_are_up_to_date():
    for path, text in results.pages().items():
        written = path.read_text(encoding="utf-8")
        assert written == text, f"{path.name} is stale; type: make results"


def test_every_page_has_a_record():
    """A record without a command would be a figure that nobody can measure again."""
    shown = {path.stem for path in (results.ROOT / "docs" / "results").glob("*.md")}
    records = results._records(results.ROOT)
    assert shown == {record.get("page", name) for name, record in records.items()}
    makefile = (results.ROOT / "Makefile").read_text(encoding="utf-8")
    for record in records.values():
        target = record["command"].split()[1]
        assert record["command"].startswith("make ") and f"\n{target}:" in makefile
