"""The plugin of the tests: its tiers, its order and its progress."""

import json
from types import SimpleNamespace

import pytest
import suite


class Item:
    """A collected test with marks."""

    def __init__(self, nodeid, *marks):
        self.nodeid, self.marks = nodeid, list(marks)

    def iter_markers(self):
        return [SimpleNamespace(name=name) for name in self.marks]

    def add_marker(self, name):
        self.marks.append(name)


@pytest.fixture
def modify(tmp_path, monkeypatch):
    """``modify(items, chosen, record)``: the ids in their order, for tests chosen by marks."""
    monkeypatch.setattr(suite, "DURATIONS", tmp_path / "durations.json")

    def modify(items, chosen="", record=None):
        if record is not None:
            suite.DURATIONS.write_text(json.dumps(record), encoding="utf-8")
        config = SimpleNamespace(getoption={"markexpr": chosen}.get)
        suite.pytest_collection_modifyitems(config, items)
        return [item.nodeid for item in items]

    return modify


def test_a_case_that_is_slow_by_two_parameters_is_long(modify):
    items = [Item("a::x"), Item("a::y", "slow"), Item("a::z", "slow", "slow")]
    modify(items)
    assert [item.marks for item in items] == [[], ["slow"], ["slow", "slow", "long"]]


@pytest.mark.parametrize("chosen, order", [
    ("not slow and not long", ["b", "c", "a"]), ("not long", ["a", "b", "c"]),
    ("long", ["c", "a", "b"]), ("", ["c", "a", "b"]),
])
def test_the_longest_file_of_the_chosen_tiers_is_first(chosen, order, modify):
    """Tests of a file stay together, in their order."""
    record = {
        "a": {"quick": 1.0, "slow": 9.0}, "b": {"quick": 4.0}, "c": {"quick": 2.0, "long": 30.0}
    }
    items = [Item(f"{file}::{name}") for name in "yx" for file in "abc"]
    assert modify(items, chosen, record) == [f"{file}::{name}" for file in order for name in "yx"]


def test_without_a_record_files_are_in_the_order_of_their_names(modify):
    assert modify([Item("b::x"), Item("a::x")]) == ["a::x", "b::x"]


def test_the_remaining_time_follows_the_speed():
    assert suite.remaining(0, 0, 600, 2) == 300  # as recorded, on two workers
    assert suite.remaining(600, 540, 600, 2) == pytest.approx(60 * 630 / 600)
    assert suite.clock(61.9) == "1:01"


def test_progress_counts_recorded_seconds_and_records_new_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "DURATIONS", tmp_path / "durations.json")
    monkeypatch.chdir(tmp_path)  # a file that is gone leaves the record
    for file in "ab":
        (tmp_path / file).touch()
    suite.DURATIONS.write_text(
        json.dumps({"a": {"quick": 8.0, "long": 5.0}, "b": {"slow": 2.0}, "gone": {"quick": 1.0}}),
        encoding="utf-8",
    )
    options = {"markexpr": "not long", "record_durations": True}
    config = SimpleNamespace(getoption=options.get, option=SimpleNamespace(tx=["popen", "popen"]))
    progress = suite.Progress(config)
    progress.plan(["a::x", "a::y", "b::x"])
    assert progress.workers == 2 and progress.seconds == {"a::x": 4.0, "a::y": 4.0, "b::x": 2.0}
    progress.printed = float("inf")  # no line of progress in this test
    for nodeid, marks, cpu in [("a::x", (), 3.0), ("b::x", ("slow",), 0.5)]:
        report = SimpleNamespace(nodeid=nodeid, keywords=marks, cpu=cpu, when="teardown")
        progress.pytest_runtest_logreport(report)
    assert progress.done == 6.0
    progress.pytest_sessionfinish()
    assert suite.read() == {"a": {"quick": 3.0, "long": 5.0}, "b": {"slow": 0.5}}
