"""The flow from a board to a bitstream, with a fake toolchain."""

import dataclasses

import pytest
from rejects import rejects

from weft.boards.benchmark import CriticalPath, OtherClock, PnrResult, RoutedDesign
from weft.boards.bitstream import BoardDesign, best_route, prepare, route, synthesize
from weft.boards.board import BoardError
from weft.boards.catalog import BOARDS
from weft.boards.pll import PllError
from weft.boards.toolchain import Netlist, SeedError, ToolchainError

BOARD = BOARDS["icebreaker"]
DESIGN = BoardDesign(BOARD, BOARD.config, "module top", "set_io rx 6")


class Tools:
    """A fake toolchain that logs its calls; seed n reaches 30 + 2 * n MHz, 36 are required."""

    def __init__(self):
        self.asked = []
        self.usb = {}  # MHz of the clock of USB by seed, of 60
        self.unplaced = set()

    def synthesize(self, text, device, folder):
        self.asked.append(text)
        folder.mkdir(parents=True)
        (folder / "cells.json").write_text('{"design": {"num_cells_by_type": {"SB_LUT4": 3}}}')
        return Netlist(folder, {"SB_LUT4": 3})

    def route(self, netlist, device, seed, pins, clock):
        assert (device, pins, clock) == (BOARD.device, DESIGN.constraints, 48)
        self.asked.append(seed)
        if seed in self.unplaced:
            raise SeedError("no placement")
        pnr = PnrResult({"LUT": 3}, 30 + 2 * seed, CriticalPath(("a", "b"), 1.0, 2.0), 1.0)
        return RoutedDesign(
            pnr, 36.0, netlist.folder / f"top-{seed}.json", netlist.folder / f"top-{seed}.bit",
            tuple(OtherClock("usb_clk", 60.0, fmax) for fmax in [self.usb.get(seed)] if fmax),
        )


@pytest.fixture
def tools():
    return Tools()


@pytest.fixture
def netlist(tools, tmp_path):
    return synthesize(tools, DESIGN, tmp_path)


def test_rejects_a_clock_before_anything_is_elaborated():
    board = dataclasses.replace(BOARD, clock=500)
    with pytest.raises(PllError, match="from 12 MHz, not 500 MHz; the nearest is 270 MHz"):
        prepare(board, board.config)


def test_synthesizes_once(tools, netlist, tmp_path):
    assert netlist.folder == tmp_path / f"icebreaker-{DESIGN.key}"
    assert synthesize(tools, DESIGN, tmp_path) == netlist
    assert tools.asked == ["module top"]


# Messages of nextpnr 0.11.1.
@pytest.mark.parametrize(("board", "line", "text"), [
    ("icebreaker", "package does not have a pin named '6' (on line 2)",
     "pin rx of uart#0 of icebreaker must be a pin of sg48, not '6'"),
    ("ulx3s-25f",
     "IO pin 'pin.buf0' constrained to pin 'G2', which does not exist for package 'CABGA381'.",
     "pin of clk25#0 of ulx3s-25f must be a pin of CABGA381, not 'G2'"),
])
def test_a_pin_that_the_package_lacks_is_reported_with_its_resource(
    tools, netlist, board, line, text
):
    def fails(*arguments):
        raise ToolchainError("nextpnr failed", f"Info: fine\nERROR: {line}\nERROR: failed\n")

    tools.route = fails
    with rejects(BoardError, text):
        route(tools, dataclasses.replace(DESIGN, board=BOARDS[board]), netlist, 1)


def test_other_errors_of_nextpnr_are_passed_on(tools, netlist):
    def fails(*arguments):
        raise ToolchainError("nextpnr failed", "ERROR: another\n")

    tools.route = fails
    with rejects(ToolchainError, "nextpnr failed"):
        route(tools, DESIGN, netlist, 1)


def test_another_design_has_another_folder(tools, netlist, tmp_path):
    other = BoardDesign(BOARD, BOARD.config, "module top", "set_io rx 7")
    assert synthesize(tools, other, tmp_path).folder != netlist.folder


def test_the_digests_of_a_board_hold_its_pins_in_any_order(monkeypatch):
    def found(constraints, board=BOARD, rtlil="attribute \\top 1\nmodule \\top\nend\n"):
        return BoardDesign(board, board.config, rtlil, constraints).digests

    first = found("# by a tool 1.0\nset_io rx 6\nset_io tx 7\n")
    assert set(first) == {"design", "conditions"}
    assert found("# by a tool 1.1\nset_io tx 7\nset_io rx 6\n") == first
    later = dataclasses.replace(BOARD, seed=9)
    for other in (found("set_io rx 7\nset_io tx 6\n"), found("set_io rx 6\nset_io tx 7\n", later)):
        assert other["design"] == first["design"] and other["conditions"] != first["conditions"]


def test_routes_once(tools, netlist):
    first = route(tools, DESIGN, netlist, 4)
    assert route(tools, DESIGN, netlist, 4) == first
    assert tools.asked == ["module top", 4]
    (netlist.folder / "routed-4.json").write_text('{"placed": ')
    assert route(tools, DESIGN, netlist, 4) == first
    assert tools.asked == ["module top", 4, 4]


def test_stops_at_the_first_seed_that_meets_the_clock(tools, netlist):
    said = []
    seed, routed = best_route(tools, DESIGN, netlist, range(1, 9), said.append)
    assert (seed, routed.pnr.fmax) == (3, 36)
    assert tools.asked[1:] == [1, 2, 3]
    assert said == [f"seed {seed}: {30 + 2 * seed}.0 MHz, 36.0 MHz required" for seed in (1, 2, 3)]


def test_a_seed_must_meet_all_clocks(tools, netlist):
    """The seed with the largest margin wins, not the one with the fastest clock."""
    said = []
    tools.usb = {3: 45.0, 4: 57.0, 5: 51.0}
    seed, routed = best_route(tools, DESIGN, netlist, range(3, 6), said.append)
    assert (seed, routed.pnr.fmax, routed.margin) == (4, 38, 57 / 60)
    assert said[1] == (
        "seed 4: 38.0 MHz, 36.0 MHz required; usb_clk 57.0 MHz, 60.0 MHz required"
    )
    tools.usb[6] = 60.0
    assert best_route(tools, DESIGN, netlist, range(3, 9))[0] == 6
    assert route(tools, DESIGN, netlist, 4) == routed  # from the file


def test_a_seed_without_a_placement_is_skipped(tools, netlist):
    said = []
    tools.unplaced = {1, 3}
    seed, routed = best_route(tools, DESIGN, netlist, range(1, 4), said.append)
    assert (seed, routed.pnr.fmax) == (2, 34)
    assert said == [
        "seed 1: no placement", "seed 2: 34.0 MHz, 36.0 MHz required", "seed 3: no placement",
    ]
    with rejects(SeedError, "no placement"):
        best_route(tools, DESIGN, netlist, [1, 3])


def test_returns_the_fastest_seed_if_none_meets_the_clock(tools, netlist):
    seed, routed = best_route(tools, DESIGN, netlist, [2, 1])
    assert (seed, routed.pnr.fmax) == (2, 34)
