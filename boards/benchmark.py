"""Results of place and route with several seeds, and a cache of results on disk."""

import contextlib
import functools
import hashlib
import json
import re
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

import weft.config
import weft.hw
from weft.boards import presets
from weft.files import write_text

__all__ = [
    "CriticalPath", "OtherClock", "PnrResult", "ResultCache", "RoutedDesign", "RouterProgress",
    "SeedResults", "critical_path", "source_digest",
]


# Lines of nextpnr's router: the connections at the start, and those that remain.
_CONNECTIONS = re.compile(r"Info: Routing (\d+) arcs")
_REMAINING = re.compile(r"Info: +\d+ \|.*\| +(\d+)\| +[\d.]+ +[\d.]+\|")
# The suffix that synthesis appends to the name of a register or net when it maps it to a cell.
_CELL = re.compile(
    r"(_(TRELLIS_FF|SB_\w+?|LUT[1-4]|PFUMX|L6MUX21|CCU2C|MULT18X18D|DP16KD"
    r"|DFF[RSEN]*|ALU|MUX2_LUT[5-8]|SDP\w+?|MULT9X9)(_.*)?)$"
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
        Maximum frequency of the core's clock in MHz.
    critical_path : CriticalPath
        Of the core's clock.
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
class OtherClock:
    """A clock of a routed design that is not the one of its core.

    Attributes
    ----------
    name : str
        The name of the clock of its domain: ``usb_clk``.
    required, fmax : float
        MHz, as in `RoutedDesign` and `PnrResult`.
    """

    name: str
    required: float
    fmax: float


@dataclass(frozen=True)
class RoutedDesign:
    """A design placed and routed with the pins and the clocks of a board.

    Attributes
    ----------
    pnr : PnrResult
    clock : float
        Required frequency of the core's clock in MHz, which nextpnr derives from the input clock
        and the PLL.
    layout : Path
        The netlist with the position of each cell.
    bitstream : Path
    others : tuple of OtherClock
        The other clocks.
    spare : float
        `weft.boards.devices.Device.spare` of its FPGA.
    """

    pnr: PnrResult
    clock: float
    layout: Path
    bitstream: Path
    others: tuple[OtherClock, ...] = ()
    spare: float = 1

    @property
    def needed(self) -> float:
        """The least fmax for the clock, in MHz."""
        return self.spare * self.clock

    @property
    def margin(self) -> float:
        """The least ratio of a clock's fmax to the one that it needs."""
        return min([
            self.pnr.fmax / self.needed, *(each.fmax / each.required for each in self.others)
        ])

    @property
    def missed(self) -> tuple[OtherClock, ...]:
        """The other clocks that are slower than required."""
        return tuple(each for each in self.others if each.fmax < each.required)


def critical_path(hops) -> CriticalPath:
    """The critical path of the hops in nextpnr's report, with the names of the design."""
    names = [_CELL.sub("", hop["to"]["cell"]) for hop in hops if hop["type"] != "setup"]
    routing = sum(hop["delay"] for hop in hops if hop["type"] == "routing")
    logic = sum(hop["delay"] for hop in hops) - routing
    inner = [name for name, before in zip(names[1:-1], names, strict=False) if name != before]
    return CriticalPath((names[0], *inner, names[-1]), logic, routing)


class ResultCache:
    """Results on disk, by a key made of everything that the result depends on.

    Parameters
    ----------
    folder : Path
        Holds one JSON file for each key.
    """

    def __init__(self, folder: Path):
        self._folder = Path(folder)

    def get(self, key: str, make):
        """The cached value of ``key``; the first time ``make()``, which must return JSON data."""
        value = self.find(key)
        if value is None:
            value = make()
            self.keep(key, value)
        return value

    def find(self, key: str):
        """The cached value of ``key``; None if there is none."""
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            return json.loads((self._folder / f"{key}.json").read_text(encoding="utf-8"))

    def keep(self, key: str, value) -> None:
        """Keep a value, which must be JSON data."""
        file = self._folder / f"{key}.json"
        self._folder.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(value))


@dataclass(frozen=True)
class SeedResults:
    """The results of one design on its device.

    Attributes
    ----------
    design : str
        16 hexadecimal digits: a digest of the netlist and of the tool versions.
    by_seed : dict of PnrResult
        The result of place and route for each seed.
    failed : dict of str
        The error of the tool for each seed that has no result.
    digests : dict of str
        `weft.boards.toolchain.digests`.
    """

    design: str
    by_seed: dict[int, PnrResult] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    @property
    def best(self) -> PnrResult:
        """The result with the highest fmax."""
        return max(self.by_seed.values(), key=lambda result: result.fmax)

    @property
    def median(self) -> float:
        """The median of fmax over the seeds, in MHz."""
        return statistics.median(result.fmax for result in self.by_seed.values())


@functools.cache
def source_digest() -> str:
    """16 hexadecimal digits: a digest of all sources that designs and cycle counts depend on."""
    sources = hashlib.sha256(Path(presets.__file__).read_bytes())
    base, hardware = (Path(module.__file__).parent for module in (weft.config, weft.hw))
    folders = *(base / name for name in ("buses", "cycles", "dtypes", "network_core")), hardware
    paths = [*base.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))]
    for path in sorted(paths):
        sources.update(path.read_bytes())
    return sources.hexdigest()[:16]


class RouterProgress:
    """Says how many connections of a design are routed: at the start, and after each quarter."""

    def __init__(self, say):
        self._say = say
        self._start, self._all, self._quarters = time.monotonic(), 0, 0

    def __call__(self, line):
        if start := _CONNECTIONS.match(line):
            self._all = int(start[1])
            minutes = (time.monotonic() - self._start) / 60
            self._say(f"placed after {minutes:.1f} min; routing {self._all:,} connections")
        elif self._all and (remaining := _REMAINING.match(line)):
            quarters = 4 * (self._all - int(remaining[1])) // self._all
            # A connection that is routed may take the wires of another one, which is routed again.
            if self._quarters < quarters < 4:
                self._quarters = quarters
                self._say(f"{quarters * 25} % of the connections are routed")
