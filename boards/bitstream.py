"""The flow from a board and a Config to a bitstream: elaborate, synthesize, place and route."""

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from weft.boards.board import Board, BoardError
from weft.boards.pins import check_pins, resource_of
from weft.boards.pnr_result import CriticalPath, PnrResult, RoutedDesign
from weft.boards.toolchain import Netlist, SeedError, Toolchain, ToolchainError, digest
from weft.boards.top import BoardTop
from weft.config import Config
from weft.files import write_text
from weft.network_core.config import NetworkCoreConfig

__all__ = ["Design", "best_route", "prepare", "route", "synthesize"]


@dataclass(frozen=True)
class Design:
    """The input of the tools.

    Attributes
    ----------
    board : Board
    config : Config or NetworkCoreConfig
    rtlil : str
        The design, in RTLIL.
    constraints : str
        Pins and clocks for place and route: LPF for an ECP5, PCF for an iCE40.
    """

    board: Board
    config: Config | NetworkCoreConfig
    rtlil: str
    constraints: str

    @property
    def array(self) -> Config:
        """The Config of the array."""
        return self.config.array

    @property
    def key(self) -> str:
        """16 hexadecimal digits: a digest of the design, tools, flows and passes over netlists."""
        return digest("board", self.board.device, self.rtlil, self.constraints)


def prepare(board: Board, config: Config | NetworkCoreConfig) -> Design:
    """Elaborate ``config`` for ``board``; equal arguments give equal text.

    Raises BoardError if the platform lacks the serial port or a pin that the board names, and
    PllError if the PLL cannot make the board's clock.
    """
    check_pins(board)
    plan = board.platform().prepare(BoardTop(board, config), "top", emit_src=False)
    constraints = plan.files[f"top.{board.device.flow.constraints}"]
    return Design(board, config, plan.files["top.il"], constraints)


def synthesize(tools: Toolchain, design: Design, folder: Path) -> Netlist:
    """The netlist of ``design``, in a subfolder of ``folder``; synthesized only once.

    Raises ToolchainError if Yosys fails.
    """
    netlist_folder = Path(folder) / f"{design.board.name}-{design.key}"
    return Netlist.of(netlist_folder) or tools.synthesize(
        design.rtlil, design.board.device, netlist_folder
    )


def route(tools: Toolchain, design: Design, netlist: Netlist, seed: int) -> RoutedDesign:
    """The netlist placed and routed with the board's pins, and its bitstream; made only once.

    Raises ToolchainError if a tool fails, and BoardError if the package of the board's FPGA does
    not have a pin of the board.
    """
    file = netlist.folder / f"routed-{seed}.json"
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
        return _from_json(json.loads(file.read_text(encoding="utf-8")), netlist.folder)
    board = design.board
    try:
        routed = tools.route(netlist, board.device, seed, design.constraints)
    except ToolchainError as error:
        missing = board.device.flow.missing_pin.search(error.output)
        if not missing:
            raise
        raise BoardError(
            f"{resource_of(board, missing[1])} of {board.name} must be a pin of"
            f" {board.device.package}, not {missing[1]!r}"
        ) from error
    value = {
        "pnr": asdict(routed.pnr), "clock": routed.clock,
        "layout": routed.layout.name, "bitstream": routed.bitstream.name,
    }
    write_text(file, json.dumps(value))
    return routed


def _from_json(value, folder):
    critical_path = value["pnr"]["critical_path"]
    pnr = PnrResult(**value["pnr"] | {
        "critical_path": CriticalPath(**critical_path | {"names": tuple(critical_path["names"])})
    })
    return RoutedDesign(
        pnr, value["clock"], folder / value["layout"], folder / value["bitstream"]
    )


def best_route(
    tools: Toolchain, design, netlist, seeds, say=lambda text: None
) -> tuple[int, RoutedDesign]:
    """Route with one seed after another until one meets the clock; return it and its result.

    If no seed meets the clock, return the one with the highest fmax. ``say(text)`` is called with
    the result of each. There is at least one seed. Raises ToolchainError if a tool fails, and
    SeedError if nextpnr finds no placement or no routing with any seed.
    """
    results = {}
    for seed in seeds:
        try:
            routed = results[seed] = route(tools, design, netlist, seed)
        except SeedError as error:
            if seed == seeds[-1] and not results:
                raise
            say(f"seed {seed}: {error}")
            continue
        say(f"seed {seed}: {routed.pnr.fmax:.1f} MHz, {routed.clock:.1f} MHz required")
        if routed.pnr.fmax >= routed.clock:
            break
    return max(results.items(), key=lambda item: item[1].pnr.fmax)
