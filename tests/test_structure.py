"""Limits of the sources' structure, without exceptions: `tools/readability.py` counts."""

import re
from pathlib import Path

import pytest
from tooling import load

ROOT = Path(__file__).resolve().parent.parent
readability = load("readability")
# Pages with sentences that a tool fills with names and figures of any length.
GENERATED = {"area.md", "mutation.md", "performance.md"}
PROSE = sorted(
    path for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if path.name not in GENERATED
)
WIDTH = 100


def test_no_elaborate_is_too_long():
    lengths = readability.elaborates(ROOT)
    assert len(lengths) > 50
    assert {key: n for key, n in lengths.items() if n > readability.LONGEST} == {}


def test_components_keep_no_state_outside_init():
    assert readability.assignments_to_self(ROOT) == []


def test_a_class_name_exists_once():
    names = readability.class_names(ROOT)
    assert len(names) > 200
    assert {name: files for name, files in names.items() if len(files) > 1} == {}


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
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim/two.py").write_text("class Twice:\n    pass\n")
    assert readability.elaborates(tmp_path) == {("hw/one.py", "Twice"): 82}
    assert readability.assignments_to_self(tmp_path) == ["hw/one.py:83"]
    assert readability.class_names(tmp_path)["Twice"] == ["hw/one.py", "sim/two.py"]


def test_other_projects_are_columns_of_the_page():
    record = {"other": {"lines": "3"}, "now": {"lines": "1", "classes": "4"}, "before": {}}
    assert readability.page(record).splitlines()[5:9] == [
        "| number | before the redesign | now | other |",
        "|---|---:|---:|---:|",
        "| lines | - | 1 | 3 |",
        "| classes | - | 4 | - |",
    ]


def test_another_project_is_measured_in_its_folder(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "one.py").write_text(
        '"""What is it."""\n\n\nclass One:\n    """x"""\n\n'
        "    def elaborate(self, platform):\n        self.x = 1\n"
    )
    found = readability.measure(tmp_path, ("package",), "package")
    assert found["lines of code"] == "8"
    assert found["longest `elaborate`, lines"] == "2"
    assert found["assignments to `self` outside `__init__`, in the hardware"] == "1"
    assert found["riddles for each thousand lines"] == "125.0"
    assert found["lines of tests for each line of code"] == "-"
