"""The cores of the boards beside what a search finds: all boards are there, and what beats them."""

import dataclasses
from pathlib import Path

from tools import presets
from weft.boards.catalog import BOARDS
from weft.config import Config
from weft.explore.model import AreaEstimate, DesignEstimate
from weft.explore.workload import WorkloadCost

OWN = Config(target="ecp5", rows=4, cols=4, depth=4, lanes=1)
SMALLER = dataclasses.replace(OWN, rows=2, lanes=2)
FASTER = dataclasses.replace(OWN, depth=8)


def estimate(config, luts, cycles, outside=()):
    cost = WorkloadCost(cycles, cycles, 0, 0, 0, 0.0)
    return DesignEstimate(config, AreaEstimate({"LUT": luts, "RAM": 8}, 50.0, outside), (cost,), 50)


def test_every_core_of_every_board_has_a_line():
    found = list(presets.uses(Path("nets")))
    names = [name for use in found for name in use.boards]
    networks = {f"{name} --for {purpose}" for name in BOARDS for purpose in BOARDS[name].networks}
    # For networks of a few bytes, for those of ONNX, for those larger than the chip, and on an FPGA
    # without estimates.
    others = {
        "ice40-hx8k-evn --for networks", "ulx3s-85f --for networks-onnx",
        "tang-nano-20k --for networks",
        *(name for name in networks if name.endswith(" --for networks-sdram")),
    }
    assert set(names) == {*BOARDS, *networks} - others
    for use in found:
        assert len(use.boards) == len(set(use.boards))
        for name in use.boards:
            board, _, purpose = name.partition(" --for ")
            config = BOARDS[board].built_for(purpose).config if purpose else BOARDS[board].config
            assert config == use.board.config
            products = not purpose and use.workloads[0] in presets.PRODUCTS
            assert products or all(word.startswith("nets/") for word in use.workloads)
    together = {tuple(use.boards) for use in found}
    assert ("icebreaker --for networks", "icesugar --for networks") in together
    assert not any({"ulx3s-25f", "ulx3s-45f"} <= set(boards) for boards in together)


def test_the_best_designs_are_beside_the_own():
    own = estimate(OWN, 1000, 5000)
    faster = estimate(FASTER, 1500, 2500, ("PEs",))
    smaller = estimate(SMALLER, 900, 4000)
    assert presets.cells(own, [faster, smaller, own]) == [
        "1,000", "5,000", "100.0", "no", r"4 x 4 x 8 \*", "1,500", "50.0", "50.0%",
        "2 x 4 x 4, `lanes` 2", "900", "80.0", "20.0%",
    ]


def test_a_core_that_nothing_beats_is_on_the_front():
    own = estimate(OWN, 1000, 5000)
    slower = estimate(SMALLER, 900, 6000)
    nothing = ["the board's", "", "", ""]
    assert presets.cells(own, [own, slower]) == [
        "1,000", "5,000", "100.0", "yes", *nothing, *nothing
    ]
    larger = estimate(FASTER, 1001, 4000)
    assert presets.cells(own, [larger, own])[3:] == [
        "yes", "4 x 4 x 8", "1,001", "80.0", "20.0%", *nothing
    ]
