"""``weft bench`` from end to end, with a fake toolchain and fake cycle counts."""

import json

import pytest

from weft.boards import presets, toolchain
from weft.boards.benchmark import CriticalPath, PnrResult
from weft.boards.devices import DEVICES
from weft.boards.presets import Preset
from weft.boards.toolchain import Netlist, ToolchainError
from weft.cli import bench, main
from weft.config import Config
from weft.designs import chosen_fields
from weft.sim.tools import ToolError

CONFIG = Config(rows=4, cols=4, depth=4)
DEVICE = DEVICES["LFE5U-25F"]
ENTRIES = {
    "core": Preset(name="core", device=DEVICE, config=CONFIG, goal=5),
    "array": Preset(name="array", device=DEVICE, config=CONFIG, array_only=True),
}


class Tools:
    """A fake toolchain; seed n reaches ``mhz + n``."""

    mhz = 100.0
    fits = True

    def __init__(self, root, *, say):
        pass

    def set_up(self):
        pass

    def synthesize(self, design, device, folder):
        (folder / "top.json").write_text("{}")
        (folder / "cells.json").write_text('{"design": {"num_cells_by_type": {}}}')
        return Netlist(folder, {})

    def place(self, netlist, device, seed, *, out_of_context):
        if not self.fits:
            raise ToolchainError("the design does not fit the LFE5U-25F: it needs DSP 31 of 28")
        used = {"LUT": 1000, "FF": 900, "DSP": 28, "RAM": 12}
        return PnrResult(used, self.mhz + seed, CriticalPath(("a", "b"), 1.0, 2.0), 1.0)


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """``run(*arguments)``: exit code and output."""
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path / "build"))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(presets, "PRESETS", ENTRIES)
    monkeypatch.setattr(presets, "component", lambda entry: entry.name)
    monkeypatch.setattr(toolchain, "to_rtlil", lambda component, *, reset: component)
    monkeypatch.setattr(toolchain, "design_digest", lambda text: text)
    monkeypatch.setattr(toolchain, "Toolchain", Tools)
    monkeypatch.setattr(bench, "predict_interval", lambda config: (128, 32800.0))
    monkeypatch.setattr(bench, "simulate_interval", lambda config, size, say: 32800.0)

    def ended(*arguments):
        code = main([
            "bench", "--docs", str(tmp_path / "docs"), "--results", str(tmp_path / "results"),
            *arguments,
        ])
        said = capsys.readouterr()
        return code, said.out + said.err

    ended.docs, ended.results = tmp_path / "docs", tmp_path / "results"
    return ended


def records(run):
    return json.loads((run.results / "performance.json").read_text())


def test_writes_the_table(run):
    code, said = run("--seeds", "1,2,3", "--jobs", "2")
    assert code == 0
    rate = f"{128**3 / 32800 * 103 / 1000:.2f}"
    assert rate in said and rate in (run.docs / "performance.md").read_text()
    core, array = records(run)
    assert (core["name"], core["simulated"], core["interval"]) == ("core", True, 32800)
    assert core["fmax"] == {"1": 101, "2": 102, "3": 103}
    assert (array["name"], array["size"]) == ("array", None)
    assert [entry["digests"]["design"] for entry in (core, array)] == ["core", "array"]
    assert core["config"] == {"rows": 4, "cols": 4, "depth": 4}


def test_one_design_without_simulation(run, monkeypatch):
    monkeypatch.setattr(bench, "simulate_interval", None)
    assert run("core", "--seeds", "4", "--no-simulation")[0] == 0
    [core] = records(run)
    assert core["simulated"] is False and core["fmax"] == {"4": 104}


@pytest.mark.exit_code("bench", 1)
def test_a_missed_goal_is_reported_and_recorded(run, monkeypatch):
    monkeypatch.setattr(Tools, "mhz", 70.0)
    code, said = run("core", "--seeds", "1")
    assert code == 1
    assert "MISSED  core must reach 5 GMAC/s, not 4.54; critical path: a to b, 1.0 ns in" in said
    assert len(records(run)) == 1


def test_what_is_worse_than_before_is_not_recorded(run, monkeypatch):
    assert run("core", "--seeds", "1")[0] == 0
    monkeypatch.setattr(Tools, "mhz", 90.0)
    code, said = run("core", "--seeds", "2")
    assert code == 1
    assert "MISSED  core must stay within 3% of the recorded 6.46 GMAC/s, not fall to 5.88" in said
    assert records(run)[-1]["fmax"] == {"1": 101}


def test_records_that_another_run_adds_meanwhile_are_kept(run, monkeypatch):
    def predicted(config):
        assert run("array", "--seeds", "1")[0] == 0  # another run, while this one counts cycles
        return 128, 32800.0

    monkeypatch.setattr(bench, "predict_interval", predicted)
    assert run("core", "--seeds", "1")[0] == 0
    assert [record["name"] for record in records(run)] == ["array", "core"]


def test_a_design_that_does_not_fit_does_not_stop_the_others(run, monkeypatch):
    monkeypatch.setattr(Tools, "fits", False)
    code, said = run("--seeds", "1")
    assert code == 1
    assert said.count("does not fit the LFE5U-25F: it needs DSP 31 of 28") == 2


def test_a_seed_that_fails_is_told_and_the_others_are_recorded(run, monkeypatch):
    place = Tools.place

    def one_fails(self, netlist, device, seed, **options):
        if seed in (2, 3):
            raise ToolchainError("no placement")
        return place(self, netlist, device, seed, **options)

    monkeypatch.setattr(Tools, "place", one_fails)
    code, said = run("core", "--seeds", "1,2,3")
    assert code == 1
    assert "MISSED  core with seed 2, 3: no placement" in said
    [record] = records(run)
    assert list(record["fmax"]) == ["1"]


def test_cycles_that_differ_are_told(run, monkeypatch):
    monkeypatch.setattr(bench, "simulate_interval", lambda config, size, say: 32801.0)
    code, said = run("core", "--seeds", "1")
    assert code == 1
    assert (
        "MISSED  core: 128^3 took 32,801 cycles in simulation; the cycle model predicts 32,800"
    ) in said


def test_a_model_that_cannot_be_built_does_not_stop_the_others(run, monkeypatch):
    def simulated(config, size, say):
        raise ToolError("Verilator must compile")

    monkeypatch.setattr(bench, "simulate_interval", simulated)
    code, said = run("--seeds", "1")
    assert code == 1 and "MISSED  core: Verilator must compile" in said
    assert [record["name"] for record in records(run)] == ["array"]


def test_lists_the_designs(run):
    code, said = run("--list")
    assert code == 0
    assert [line.split()[0] for line in said.splitlines()] == ["core", "array"]
    assert not run.docs.exists() and not run.results.exists()


def test_rejects_an_unknown_design(run):
    code, said = run("core", "cores")
    assert (code, said) == (2, "weft: error: design must be one of core, array, not 'cores'\n")


def test_reports_tools_that_cannot_be_installed(run, monkeypatch):
    def set_up(self):
        raise ToolchainError("pip failed to install Yosys and nextpnr: no space left")

    monkeypatch.setattr(Tools, "set_up", set_up)
    code, said = run()
    assert code == 2
    assert said.splitlines()[-1] == (
        "weft: error: pip failed to install Yosys and nextpnr: no space left"
    )


@pytest.mark.parametrize(("option", "value", "text"), [
    ("--seeds", "1,x", "seeds must be integers of 0 or more, not '1,x'"),
    ("--seeds", "-1", "seeds must be integers of 0 or more, not '-1'"),
    ("--jobs", "0", "jobs must be an integer in 1..9999, not '0'"),
])
def test_rejects_options_that_are_none(run, capsys, option, value, text):
    with pytest.raises(SystemExit, match="^2$"):
        run(f"{option}={value}")
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"{text}; see weft bench --help")


@pytest.mark.parametrize("preset", presets.PRESETS.values(), ids=presets.PRESETS)
def test_the_recorded_fields_give_the_config(preset):
    fields = chosen_fields(preset.config)
    assert Config.from_dict(fields) == preset.config
    assert len(fields) < 15
