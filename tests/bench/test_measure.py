"""Measuring many designs: every run is run, none twice, and a failure stops no other design."""

import dataclasses

import pytest

from weft.bench import measure as measuring
from weft.bench.measure import PlacementWork, measure
from weft.boards import presets, toolchain
from weft.boards.benchmark import CriticalPath, PnrResult
from weft.boards.devices import DEVICES
from weft.boards.presets import Preset
from weft.boards.toolchain import Netlist, ToolchainError
from weft.config import Config
from weft.tasks.engine import Engine

DEVICE = DEVICES["LFE5U-25F"]
DESIGNS = [
    Preset(name="one", device=DEVICE, config=Config(rows=1)),
    Preset(name="two", device=DEVICE, config=Config(rows=2), array_only=True),
]
SLOWEST = CriticalPath(("a", "b"), 1.0, 2.0)


class Tools:
    """A fake toolchain: a larger seed is faster; the designs in ``bad`` fail."""

    bad, said = (), []

    def __init__(self, root, *, say):
        pass

    def set_up(self):
        pass

    def synthesize(self, design, device, folder):
        self.said.append(design)
        if "broken" in self.bad:
            raise ToolchainError("yosys must do")
        (folder / "top.json").write_text(design)
        (folder / "cells.json").write_text('{"design": {"num_cells_by_type": {"LUT4": 5}}}')
        return Netlist(folder, {"LUT4": 5})

    def place(self, netlist, device, seed, *, out_of_context):
        design = (netlist.folder / "top.json").read_text()
        self.said.append((design, seed, out_of_context))
        assert netlist.cells == {"LUT4": 5}
        if design in self.bad or (design, seed) in self.bad:
            raise ToolchainError("it must fit")
        return PnrResult({"LUT": 7}, 100.0 + seed, SLOWEST, 1.5)


@pytest.fixture(autouse=True)
def tools(monkeypatch, tmp_path):
    """The fake tools; the text of a design is the number of its rows."""
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(toolchain, "to_rtlil", lambda component, *, reset: component)
    monkeypatch.setattr(presets, "component", lambda entry: f"rows {entry.config.rows}")
    monkeypatch.setattr(toolchain, "Toolchain", Tools)
    monkeypatch.setattr(Tools, "said", [])
    return Tools


def run(folder, seeds=(1, 2, 3), designs=DESIGNS, jobs=2):
    remaining_counts = []
    Tools.said.clear()

    def on_step(preset, outcome, remaining):
        assert outcome in ("it must fit", "yosys must do") or " MHz with seed " in outcome
        remaining_counts.append(remaining)

    with Engine(PlacementWork(), workers=jobs) as engine:
        results = measure(engine, designs, seeds, folder=folder, on_step=on_step)
    return results, remaining_counts


@pytest.mark.parametrize("jobs", [1, 4])
def test_every_entry_with_every_seed(tmp_path, jobs):
    found, remaining_counts = run(tmp_path, jobs=jobs)
    assert list(found) == ["one", "two"]
    assert all(one.best.fmax == 103 and one.median == 102 for one in found.values())
    assert found["one"].best.critical_path == SLOWEST
    assert found["one"].design != found["two"].design
    steps = ["rows 1", "rows 2", *(("rows 1", n, False) for n in (1, 2, 3))]
    steps += [("rows 2", n, True) for n in (1, 2, 3)]
    assert sorted(map(str, Tools.said)) == sorted(map(str, steps))
    assert remaining_counts == [*range(5, -1, -1)]
    assert list((tmp_path / "build" / "bench").iterdir()) == []


def test_nothing_is_done_twice(tmp_path):
    first, _ = run(tmp_path)
    assert run(tmp_path) == (first, [*range(5, -1, -1)])
    assert Tools.said == []
    found, _ = run(tmp_path, seeds=(2, 9))
    assert sorted(map(str, Tools.said)) == sorted(map(str, [
        "rows 1", "rows 2", ("rows 1", 9, False), ("rows 2", 9, True)
    ]))
    assert found["one"].best.fmax == 109 and found["one"].by_seed[2] == first["one"].by_seed[2]


def test_another_design_is_done_anew(tmp_path):
    run(tmp_path)
    changed = dataclasses.replace(DESIGNS[0], config=Config(rows=5))
    run(tmp_path, seeds=(1,), designs=[changed, DESIGNS[1]])
    assert Tools.said == ["rows 5", ("rows 5", 1, False)]


def test_changed_sources_of_an_equal_design_repeat_nothing(tmp_path, monkeypatch):
    run(tmp_path)
    monkeypatch.setattr(measuring, "source_digest", lambda: "others")
    run(tmp_path)
    assert Tools.said == []


def test_a_failure_stops_no_other_design(tmp_path, monkeypatch):
    monkeypatch.setattr(Tools, "bad", ["rows 2"])
    found, remaining_counts = run(tmp_path)
    assert len(found["one"].by_seed) == 3 and not found["one"].failed
    assert not found["two"].by_seed
    assert found["two"].failed == dict.fromkeys((1, 2, 3), "it must fit")
    assert remaining_counts[-1] == 0
    monkeypatch.setattr(Tools, "bad", [])
    found, remaining_counts = run(tmp_path)  # a failure is not kept
    assert len(found["two"].by_seed) == 3 and not found["two"].failed


def test_a_failure_stops_no_other_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(Tools, "bad", [("rows 2", 2)])
    found, remaining_counts = run(tmp_path)
    assert sorted(found["two"].by_seed) == [1, 3] and found["two"].failed == {2: "it must fit"}
    assert found["two"].best.fmax == 103 and found["two"].median == 102
    assert remaining_counts[-1] == 0


def test_a_failed_synthesis_fails_its_seeds(tmp_path, monkeypatch):
    monkeypatch.setattr(Tools, "bad", ["broken"])
    found, remaining_counts = run(tmp_path)
    for results in found.values():
        assert results.failed == dict.fromkeys((1, 2, 3), "yosys must do")
    assert remaining_counts[-1] == 0 and len(Tools.said) == 2
