"""``weft gatesim`` from end to end, with fake netlists and a fake simulator."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from digits import CNN

from weft.boards import bitstream, catalog, toolchain
from weft.boards.designs import LANGUAGE_85F, NETWORKS_25F
from weft.boards.toolchain import Netlist
from weft.cli import main
from weft.sim import gates
from weft.sim.gates import GateSimError, GateTest, UnsupportedCell

PINS = {
    "clk12_0__io": "input", "clk25_0__io": "input", "uart_0__rx__io": "inout",
    "uart_0__tx__io": "inout",
}
PORTS = {name: {"direction": way, "bits": [bit]} for bit, (name, way) in enumerate(PINS.items(), 2)}
DIGITS = str(CNN)
STORIES = str(Path(__file__).parents[2] / "examples/stories.weft")


class Tools:
    """A fake toolchain."""

    def __init__(self, root, *, say):
        pass

    def set_up(self):
        pass


@dataclasses.dataclass
class FakeGateSim:
    """A simulator that has run."""

    program: str
    divisor: int
    seed: int
    cycles = 12_345
    sent = 678
    received = 90

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """``run(*arguments)``: exit code, output, and the arguments of `verilog`."""
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path))
    asked = {}
    netlist = tmp_path / "top.json"
    netlist.write_text(json.dumps({"modules": {"top": {"ports": PORTS, "cells": {}}}}))
    shutil.copy(netlist, tmp_path / "routed.json")

    def translated(path, family, pins, *, seed):
        asked.update(netlist=path.name, family=family, pins=pins, seed=seed)
        return "text"

    routed = type("Routed", (), {"layout": tmp_path / "routed.json"})
    monkeypatch.setattr(toolchain, "Toolchain", Tools)
    monkeypatch.setattr(bitstream, "prepare", lambda board, config: None)
    monkeypatch.setattr(bitstream, "synthesize", lambda *given: Netlist(tmp_path, {}))
    monkeypatch.setattr(bitstream, "best_route", lambda *given: (1, routed))
    monkeypatch.setattr(gates, "verilog", translated)
    monkeypatch.setattr(gates, "build_model", lambda name, text, say: name)
    monkeypatch.setattr(gates, "GateSim", FakeGateSim)

    def passes(*given, **options):
        return GateTest(jobs=5, macs=999, results=88)

    def ended(*arguments, check_gates=passes):
        monkeypatch.setattr(gates, "check_gates", check_gates)
        status = main(["gatesim", *arguments])
        return status, capsys.readouterr(), asked

    return ended


def test_simulates_the_routed_netlist_of_an_ice40(run):
    status, said, asked = run("icebreaker")
    assert status == 0
    assert asked == {
        "netlist": "routed.json", "family": "ice40", "seed": 1,
        "pins": {"clk": "clk12_0__io", "rx": "uart_0__rx__io", "tx": "uart_0__tx__io"},
    }
    for text in ("icebreaker", "iCE40UP5K", "routed", "12,345", "678", "equal"):
        assert text in said.out


def test_simulates_the_synthesized_netlist(run):
    status, said, asked = run("icebreaker", "--stage", "synthesized", "--seed", "7")
    assert (status, asked["netlist"], asked["seed"]) == (0, "top.json", 7)
    assert "synthesized" in said.out


def test_simulates_a_design_of_options(run, monkeypatch):
    checked = {}

    def check_gates(sim, config, *, seed, say):
        checked.update(divisor=sim.divisor, name=config.name)
        return GateTest(jobs=1, macs=2, results=3)

    status, _, _ = run(
        "ulx3s-25f", "--rows", "1", "--cols", "2", "--clock", "60", check_gates=check_gates
    )
    assert status == 0
    assert checked == {"divisor": 20, "name": "1x2x8_fip_ecp5"}


def test_runs_a_network_on_the_core_for_networks(run, monkeypatch):
    given = {}

    def check_network(sim, program, *, seed, say):
        given.update(divisor=sim.divisor, config=program.config, name=program.name, seed=seed)
        return GateTest(jobs=9, macs=77_777, results=10)

    monkeypatch.setattr(gates, "check_network", check_network)
    status, said, asked = run(
        "ulx3s-25f", "--for", "networks", "--network", DIGITS, "--baud", "27500000", "--seed", "3"
    )
    assert (status, asked["netlist"], asked["pins"]["clk"]) == (0, "top.json", "clk25_0__io")
    assert given == {"divisor": 4, "config": NETWORKS_25F.config, "name": "digits_cnn", "seed": 3}
    for text in (NETWORKS_25F.config.name, "77,777", "equal"):
        assert text in said.out


@pytest.mark.exit_code("gatesim", 1)
def test_writes_a_token_on_the_language_core(run, monkeypatch):
    given = []

    def check_language(sim, program, config, *, seed, say):
        given.append((sim.divisor, program.name, config))
        return GateTest(jobs=26, macs=88_888, results=2)

    monkeypatch.setattr(gates, "check_language", check_language)
    status, said, _ = run("ulx3s-85f", "--for", "language", "--network", STORIES)
    assert (status, given) == (0, [(32, "stories", LANGUAGE_85F.config)])
    assert "88,888" in said.out and "equal" in said.out


def test_reports_a_difference(run):
    def check_gates(*given, **options):
        raise GateSimError("sums differ from golden: job 1, word 2")

    status, said, _ = run("icebreaker", check_gates=check_gates)
    assert status == 1
    assert "FAILED  icebreaker: sums differ from golden: job 1, word 2" in said.out
    assert "NO" in said.out


def test_reports_a_cell_without_a_model(run, monkeypatch):
    def translated(*given, **options):
        raise UnsupportedCell("no simulation model for cell type PFUMX, of cell c")

    monkeypatch.setattr(gates, "verilog", translated)
    status, said, _ = run("icebreaker")
    assert status == 2
    assert said.err == "weft: error: no simulation model for cell type PFUMX, of cell c\n"


@pytest.mark.parametrize("arguments, problem", [
    ((), "no board given; name one of "),
    (("no-board",), "board must be one of "),
    (("ulx3s-25f", "--for", "networks"), "--network must be given with a network core"),
    (("ulx3s-25f", "--network", DIGITS), "--network must be given with a network core"),
    (("ulx3s-25f", "--rows", "0"), "rows must be in 1..64, not 0"),
    (("orangecrab-25f",),
     "weft gatesim must be for a board with a serial port; the link of orangecrab-25f is USB"),
    (("ulx3s-25f", "--for", "networks-sdram", "--network", DIGITS),
     "the core of weft gatesim must have no SDRAM, and that of ulx3s-25f has one"),
    (("ecpix5-45f", "--for", "networks", "--network", DIGITS), "has no network core"),
    (("ulx3s-25f", "--for", "networks", "--network", "no.tflite"), "no.tflite"),
    (("ulx3s-85f", "--for", "language"), "--network must be given with a network core or a"),
    (("ulx3s-85f", "--for", "language", "--network", DIGITS), "must be a language model for ulx3s"),
    (("ulx3s-85f", "--for", "language-sdram", "--network", STORIES),
     "the core of weft gatesim must have no SDRAM, and that of ulx3s-85f has one"),
    (("icebreaker", "--for", "language", "--network", STORIES), "must have no microprogram, and"),
])
def test_rejects_arguments_before_any_work(run, arguments, problem):
    status, said, _ = run(*arguments)
    assert status == 2
    assert problem in said.err


def test_every_board_has_the_pins():
    """Amaranth gives the pins the names that ``weft gatesim`` looks for."""
    for board in catalog.BOARDS.values():
        if board.link != "serial":
            continue
        platform = board.platform()
        assert platform.default_clk
        assert {io.name for io in platform.lookup("uart", 0).ios if hasattr(io, "name")} >= {
            "rx", "tx",
        }


def test_rejects_routed_cells_without_models(run):
    status, said, _ = run("tang-nano-20k", "--stage", "routed")
    assert status == 2
    assert said.err == (
        "weft: error: --stage must be synthesized for tang-nano-20k: routed cells of a GW2AR-18C"
        " have no models\n"
    )
