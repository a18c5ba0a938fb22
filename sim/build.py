"""Builds the Verilog and the simulation model of a Config, each once."""

import functools
import importlib.metadata
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import weft
import weft.hw
from weft.buses import BUSES
from weft.config import Config
from weft.dtypes import DTYPES
from weft.files import write_text
from weft.mac_cells import MAC_CELLS
from weft.registers import LATENCY
from weft.sim import cache, tools, verilated
from weft.sim.cache import folder
from weft.targets import TARGETS

__all__ = ["design", "executable", "folder", "lint", "model", "verilog"]


def executable(kind: str, name: str, verilog: str, *, top: str) -> Path:
    """The file ``sim.vvp`` of a Verilog text, in the cache.

    Parameters
    ----------
    kind : str
        Folder of the cache.
    name : str
        Name of the design, for messages and file names.
    top : str
        The module that is simulated.

    Raises
    ------
    weft.sim.tools.ToolError
        If Icarus Verilog is missing or too old, or does not compile the text.
    """
    icarus = tools.icarus()

    def make(build_folder):
        write_text(build_folder / f"{top}.v", verilog)
        write_text(build_folder / "timescale", "+timescale+1ns/1ps\n")
        command = [
            str(icarus.path), "-g2012", "-o", "sim.vvp", "-f", "timescale",
            "-s", top, f"{top}.v",
        ]
        run = subprocess.run(
            command, cwd=build_folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        )
        if run.returncode:
            log = cache.folder() / f"{name}.log"
            write_text(log, run.stdout)
            raise tools.ToolError(
                f"Icarus Verilog did not compile {name} and ended with status {run.returncode}:"
                f" {run.stdout.strip().splitlines()[-1:]}; its output is in {log}"
            )

    digest = cache.digest(Path(__file__).read_bytes(), str(icarus), top, verilog)
    return cache.entry(kind, f"{name}-{digest}", make) / "sim.vvp"


def _sources():
    """The source files that the Verilog of a Config depends on."""
    root, hardware = (Path(package.__file__).parent for package in (weft, weft.hw))
    names = "", "buses", "dtypes", "language_core", "network_core", "network_core/microcode"
    flat = (root / name for name in names)
    folders = *(folder.glob("*.py") for folder in flat), hardware.rglob("*.py")
    paths = [path for folder in folders for path in sorted(folder)]
    return [path.read_bytes() for path in paths]


# The cache key uses the sources instead of the Verilog, which takes seconds to generate. They are
# read on import: the modules imported here do not change if the files are edited later.
_SOURCES = _sources()


def _extended() -> bool:
    """Whether a program has registered hardware, whose sources and arguments are unknown."""
    return any(registry.extended for registry in (BUSES, DTYPES, MAC_CELLS, TARGETS))


def design(verilog: Callable[[], str], *parts: str) -> tuple[list, Callable[[], str]]:
    """Two arguments of `weft.sim.verilated.executable`: all that a design depends on, its Verilog.

    The design depends on the sources of Weft and on ``parts``. If a program has registered objects
    of its own, it also depends on the Verilog, which is then generated each time.
    """
    dependencies = [importlib.metadata.version("amaranth"), *_SOURCES, *parts]
    if _extended():
        verilog = functools.cache(verilog)
        dependencies.append(verilog())
    return dependencies, verilog


def verilog(config: Config) -> str:
    """The Verilog of a Config from `weft.hw.export.verilog`.

    It is converted once, or each time if a program has registered hardware.
    """
    def convert():
        from weft.hw import export

        return export.verilog(config)

    def make(build_folder):
        write_text(build_folder / "weft.v", convert())

    if _extended():
        return convert()
    dependencies, _ = design(convert, repr(config))
    name = f"{config.name}-{cache.digest(*dependencies)}"
    build_folder = cache.entry("verilog", name, make)
    return (build_folder / "weft.v").read_text(encoding="utf-8")


HARNESS = Path(__file__).with_name("harness.cpp")


def model(config: Config, *, trace: bool = False, say=lambda text: None) -> Path:
    """The executable model of ``config``, from the cache or newly built; it has no reset.

    Its Verilog is the one of a model, as `weft.hw.export.to_verilog` has it. If it can write
    waveforms, it has the hierarchy of the design and a reset that is never active.

    Parameters
    ----------
    trace : bool
        Whether the model can write waveforms; such a model is slower.
    say : callable
        Called with a line of text before a compilation.

    Raises
    ------
    weft.sim.tools.ToolError
        If a tool is missing or too old, or does not compile the model.
    """
    defines = [
        f"BYTES_IN={config.bytes_in}", f"BYTES_OUT={config.bytes_out}",
        f"REGISTER_LATENCY={LATENCY}",
    ]

    def text():
        from weft.hw import export

        return export.verilog(config, model=not trace)

    return verilated.executable(
        "models", config.name, *design(text, repr(config)), HARNESS, top="weft",
        defines=defines, trace=trace,
        say=lambda: say(f"compiling the {config.name} model (once, maybe minutes)"),
    )


def lint(config: Config) -> str:
    """Verilator's messages on the design, with the waivers of a simulation; empty without errors.

    Raises
    ------
    weft.sim.tools.ToolError
        If Verilator is missing or too old.
    """
    verilator, text = tools.verilator(), verilog(config)
    with tempfile.TemporaryDirectory() as folder:
        write_text(Path(folder) / "weft.v", text)
        run = subprocess.run(
            [verilator.path, "--lint-only", *verilated.WAIVERS, "--top-module", "weft", "weft.v"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )
    # Warnings are errors; without them the output is a report of its work.
    return f"status {run.returncode}\n{run.stdout.strip()}" if run.returncode else ""
