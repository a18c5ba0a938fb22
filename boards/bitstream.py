"""From a board and a Config to a bitstream that meets its clock, or an error that says why not."""

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from amaranth.build import ResourceError

from weft.boards import pll
from weft.boards.board import Board, BoardError
from weft.boards.toolchain import CriticalPath, Netlist, PnrResult, RoutedDesign, digest
from weft.boards.top import Top
from weft.config import Config

__all__ = ["Design", "best_route", "prepare", "route", "synthesize"]


@dataclass(frozen=True)
class Design:
    """What the tools get.

    Attributes
    ----------
    board : Board
    config : Config
    text : str
        The design, in RTLIL.
    pins : str
        Pins and clocks, for place and route.
    """

    board: Board
    config: Config
    text: str
    pins: str

    @property
    def key(self) -> str:
        """16 that stand for it and the tools."""
        return digest("board", self.board.device, self.text, self.pins)


def prepare(board: Board, config: Config) -> Design:
    """``config`` on ``board``; the same text every time.

    Raises BoardError where the platform lacks a pin that the board names, or the serial port, and
    PllError where its PLL does not make the board's clock.
    """
    platform = board.platform()
    try:
        for name, number, *_ in ((platform.default_clk, 0), ("uart", 0), *board.leds.values()):
            platform.lookup(name, number)
    except ResourceError as error:
        raise BoardError(f"platform of {board.name} must have its pins: {error}") from error
    pll.PLLS[board.device.family](platform.default_clk_frequency / 1e6, board.clock)
    plan = platform.prepare(Top(board, config), "top", emit_src=False)
    pins = plan.files["top.lpf" if board.device.family == "ecp5" else "top.pcf"]
    return Design(board, config, plan.files["top.il"], pins)


def synthesize(tools, design: Design, folder: Path) -> Netlist:
    """Its netlist, in a folder of its own in ``folder``; made once."""
    where = Path(folder) / f"{design.board.name}-{design.key}"
    return Netlist.of(where) or tools.synthesize(design.text, design.board.device, where)


def route(tools, design: Design, netlist: Netlist, seed: int) -> RoutedDesign:
    """The netlist with its pins, and its bitstream; made once."""
    file = netlist.folder / f"routed-{seed}.json"
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
        return _routed(json.loads(file.read_text(encoding="utf-8")), netlist.folder)
    made = tools.route(netlist, design.board.device, seed, design.pins)
    value = {
        "pnr": asdict(made.pnr), "clock": made.clock,
        "layout": made.layout.name, "bitstream": made.bitstream.name,
    }
    file.write_text(json.dumps(value), encoding="utf-8")
    return made


def _routed(value, folder):
    critical_path = value["pnr"]["critical_path"]
    pnr = PnrResult(**value["pnr"] | {
        "critical_path": CriticalPath(**critical_path | {"names": tuple(critical_path["names"])})
    })
    return RoutedDesign(
        pnr, value["clock"], folder / value["layout"], folder / value["bitstream"]
    )


def best_route(
    tools, design, netlist, seeds, on_seed=lambda seed, routed: None
) -> tuple[int, RoutedDesign]:
    """The first seed that meets the clock, with what it gave; the fastest one where none does."""
    found = {}
    for seed in seeds:
        found[seed] = route(tools, design, netlist, seed)
        on_seed(seed, found[seed])
        if found[seed].pnr.fmax >= found[seed].clock:
            break
    return max(found.items(), key=lambda one: one[1].pnr.fmax)
