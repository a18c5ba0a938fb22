"""The results of place and route."""

import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["CriticalPath", "PnrResult", "RoutedDesign", "critical_path"]

# The suffix that synthesis appends to the name of a register or net when it maps it to a cell.
_CELL = re.compile(
    r"(_(TRELLIS_FF|SB_\w+?|LUT4|PFUMX|L6MUX21|CCU2C|MULT18X18D|DP16KD)(_.*)?)$"
    r"|((\.U\$\d+)?\$(CCU2|ccu2).*)$"
)


@dataclass(frozen=True)
class CriticalPath:
    """The critical path between registers of a design.

    Attributes
    ----------
    names : tuple of str
        The signals along the path, by their names in the design, from the first register to the
        last.
    logic : float
        Delay in cells in nanoseconds, with clock-to-output of the first and setup of the last.
    routing : float
        Delay between cells in nanoseconds.
    """

    names: tuple[str, ...]
    logic: float
    routing: float

    def __str__(self):
        return (
            f"{self.names[0]} to {self.names[-1]}, {self.logic:.1f} ns in cells,"
            f" {self.routing:.1f} ns between them"
        )


@dataclass(frozen=True)
class PnrResult:
    """The result of place and route.

    Attributes
    ----------
    used : dict of int
        Amount of each of `weft.boards.devices.RESOURCES` that the design uses.
    fmax : float
        Maximum frequency in MHz; with several clocks, of the one with the smallest ratio of
        achieved to required frequency.
    critical_path : CriticalPath
    seconds : float
        Duration of place and route.
    arrivals : dict of float
        `weft.boards.blocks.latest_arrivals`.
    """

    used: dict[str, int]
    fmax: float
    critical_path: CriticalPath
    seconds: float
    arrivals: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RoutedDesign:
    """A design placed and routed with the pins and the clock of a board.

    Attributes
    ----------
    pnr : PnrResult
    clock : float
        Required frequency in MHz, which nextpnr derives from the input clock and the PLL.
    layout : Path
        The netlist with the position of each cell.
    bitstream : Path
    """

    pnr: PnrResult
    clock: float
    layout: Path
    bitstream: Path


def critical_path(hops) -> CriticalPath:
    """The critical path of the hops in nextpnr's report, with the names of the design."""
    names = [_CELL.sub("", hop["to"]["cell"]) for hop in hops if hop["type"] != "setup"]
    routing = sum(hop["delay"] for hop in hops if hop["type"] == "routing")
    logic = sum(hop["delay"] for hop in hops) - routing
    inner = [name for name, before in zip(names[1:-1], names, strict=False) if name != before]
    return CriticalPath((names[0], *inner, names[-1]), logic, routing)
