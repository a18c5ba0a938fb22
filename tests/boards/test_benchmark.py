"""Measuring many designs: every step runs, no step runs twice, a failure stops no other design."""

import dataclasses

import pytest

from weft.boards import benchmark
from weft.boards.benchmark import ResultCache, SeedResults, measure
from weft.boards.devices import DEVICES
from weft.boards.presets import Preset
from weft.boards.toolchain import CriticalPath, Netlist, PnrResult, ToolchainError
from weft.config import Config

DEVICE = DEVICES["LFE5U-25F"]
DESIGNS = [
    Preset(name="one", device=DEVICE, config=Config(rows=1)),
    Preset(name="two", device=DEVICE, config=Config(rows=2), array_only=True),
]
SLOWEST = CriticalPath(("a", "b"), 1.0, 2.0)


class Tools:
    """A fake toolchain: a larger seed is faster; the designs in ``bad`` fail."""

    def __init__(self, bad=()):
        self.bad = bad
        self.said = []

    def synthesize(self, design, device, folder):
        self.said.append(design)
        folder.mkdir(parents=True, exist_ok=True)
        if "broken" in self.bad:
            raise ToolchainError("yosys must do")
        cells = '{"design": {"num_cells_by_type": {"LUT4": 5}}}'
        (folder / "cells.json").write_text(cells)
        return Netlist(folder, {"LUT4": 5})

    def place(self, netlist, device, seed, *, out_of_context):
        name = netlist.folder.name.split("-")[0]
        self.said.append((name, seed, out_of_context))
        if name in self.bad:
            raise ToolchainError("it must fit")
        return PnrResult({"LUT": 7}, 100.0 + seed, SLOWEST, 1.5)


@pytest.fixture(autouse=True)
def designs(monkeypatch):
    """The text of a design is the number of its rows."""
    monkeypatch.setattr(benchmark, "to_rtlil", lambda component, *, reset: component)
    monkeypatch.setattr(benchmark.presets, "component", lambda entry: f"rows {entry.config.rows}")


def run(tools, folder, seeds=(1, 2, 3), designs=DESIGNS, jobs=2):
    remaining_counts = []

    def on_step(preset, outcome, remaining):
        known = "synthesized", "it must fit", "yosys must do"
        assert outcome in known or " MHz with seed " in outcome
        remaining_counts.append(remaining)

    results = measure(tools, designs, seeds, folder=folder, jobs=jobs, on_step=on_step)
    return results, remaining_counts


@pytest.mark.parametrize("jobs", [1, 4])
def test_every_entry_with_every_seed(tmp_path, jobs):
    tools = Tools()
    found, remaining_counts = run(tools, tmp_path, jobs=jobs)
    assert list(found) == ["one", "two"]
    assert all(one.best.fmax == 103 and one.median == 102 for one in found.values())
    assert found["one"].design != found["two"].design
    steps = ["rows 1", "rows 2", *(("one", n, False) for n in (1, 2, 3))]
    steps += [("two", n, True) for n in (1, 2, 3)]
    assert sorted(map(str, tools.said)) == sorted(map(str, steps))
    assert remaining_counts == [*range(7, -1, -1)]


def test_nothing_is_done_twice(tmp_path):
    first, _ = run(Tools(), tmp_path)
    tools = Tools()
    assert run(tools, tmp_path)[0] == first
    assert tools.said == []
    found, _ = run(tools, tmp_path, seeds=(2, 9))
    assert tools.said == [("one", 9, False), ("two", 9, True)] or len(tools.said) == 2
    assert found["one"].best.fmax == 109 and found["one"].by_seed[2] == first["one"].by_seed[2]


def test_another_design_is_done_anew(tmp_path):
    run(Tools(), tmp_path)
    tools = Tools()
    changed = dataclasses.replace(DESIGNS[0], config=Config(rows=5))
    run(tools, tmp_path, seeds=(1,), designs=[changed, DESIGNS[1]])
    assert tools.said == ["rows 5", ("one", 1, False)]


def test_changed_sources_of_an_equal_design_repeat_nothing(tmp_path, monkeypatch):
    run(Tools(), tmp_path)
    monkeypatch.setattr(benchmark, "source_digest", lambda: "others")
    tools = Tools()
    run(tools, tmp_path)
    assert tools.said == []


def test_a_failure_stops_no_other_design(tmp_path):
    found, remaining_counts = run(Tools(bad=["two"]), tmp_path)
    assert isinstance(found["one"], SeedResults) and len(found["one"].by_seed) == 3
    assert str(found["two"]) == "it must fit"
    assert remaining_counts[-1] == 0
    found, remaining_counts = run(Tools(), tmp_path)  # a failure is not kept
    assert isinstance(found["two"], SeedResults)


def test_a_failed_synthesis_skips_its_seeds(tmp_path):
    found, remaining_counts = run(Tools(bad=["broken"]), tmp_path)
    assert {str(one) for one in found.values()} == {"yosys must do"}
    assert remaining_counts[-1] == 0


def test_cache_computes_once_and_replaces_damaged_files(tmp_path):
    cache, made = ResultCache(tmp_path / "c"), []

    def make():
        made.append(1)
        return {"a": [1, 2.5, None]}

    assert cache.get("k", make) == cache.get("k", make) == {"a": [1, 2.5, None]}
    assert len(made) == 1
    (tmp_path / "c" / "k.json").write_text('{"a"')
    assert cache.get("k", make) == {"a": [1, 2.5, None]} and len(made) == 2


def test_source_digest_has_16_digits():
    assert len(benchmark.source_digest()) == 16 and int(benchmark.source_digest(), 16) >= 0
