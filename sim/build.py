"""Builds programs that simulate, each once: Verilog, Verilator, C++; that of a Config is one."""

import contextlib
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import weft
import weft.hw
from weft.config import Config
from weft.registers import LATENCY
from weft.sim import tools

__all__ = ["folder", "key", "model", "program"]

# What Yosys writes and Verilator remarks on: widths follow Verilog's own rules in expressions that
# Yosys has made explicit, and its priority cases overlap by design.
WAIVERS = ["-Wno-WIDTHEXPAND", "-Wno-WIDTHTRUNC", "-Wno-CASEOVERLAP", "-Wno-UNOPTFLAT"]
LIMIT = 3600  # seconds a compilation may take
HARNESS = Path(__file__).with_name("model.cpp")


def _sources():
    """The texts that a model follows from, but for its Config."""
    root, hardware = (Path(package.__file__).parent for package in (weft, weft.hw))
    paths = [*sorted(root.glob("*.py")), *sorted(hardware.rglob("*.py")), HARNESS]
    return [path.read_bytes() for path in paths]


# They stand for the Verilog, which takes seconds to make. As they are now: what a program has
# imported stays as it was, whoever edits them while it runs.
SOURCES = _sources()


def folder() -> Path:
    """Where builds are kept: ``$WEFT_BUILD``, else ``weft`` in the user's cache folder."""
    own = os.environ.get("WEFT_BUILD")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(own).absolute() if own else cache / "weft"


def model(config: Config, *, trace: bool = False, say=lambda text: None) -> Path:
    """The program that simulates ``config``: the one built before, or a new one.

    Parameters
    ----------
    trace : bool
        One that can write waveforms; it is slower.
    say : callable
        Told, in a line, what takes long.

    Raises
    ------
    weft.sim.tools.ToolError
        Where a tool is missing or too old, or does not compile the model.
    """
    def verilog():
        from weft.hw import export

        return export.verilog(config)

    made = key(repr(config), trace, *SOURCES)
    defines = [
        f"BYTES_IN={config.bytes_in}", f"BYTES_OUT={config.bytes_out}",
        f"REGISTER_LATENCY={LATENCY}", *["TRACE"] * trace,
    ]
    return program(
        folder() / "models" / f"{config.name}-{made}", verilog, HARNESS,
        name=config.name, top="weft", defines=defines, trace=trace,
        say=lambda: say(f"compiling the {config.name} model (once, some 20 to 60 s)"),
    )


def key(*parts) -> str:
    """16 digits that change with ``parts``, text or bytes, and with the tools and this file."""
    versions = tools.verilator().version, importlib.metadata.version("amaranth")
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for part in (*versions, *parts):
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()[:16]


def program(
    place: Path, verilog, harness: Path, *, name, top, defines=(), trace=False, large=False,
    say=lambda: None,
) -> Path:
    """``model`` in the folder ``place``: a simulation of a Verilog text, driven by a C++ harness.

    The folder appears once all is in it, or not at all: processes may build the same one.

    Parameters
    ----------
    place : Path
        Its name tells all that the program is made from: see `key`.
    verilog : callable
        Gives the text, where there is no program yet.
    harness : Path
        A C++ file with ``main``.
    name : str
        Of the model, for errors and logs.
    top : str
        The module that is simulated.
    defines : list of str
        For the harness: ``NAME`` or ``NAME=value``.
    trace : bool
        Whether it can write waveforms.
    large : bool
        Compile it in small pieces and less well, else a netlist takes hours.
    say : callable
        Called before what takes long.

    Raises
    ------
    weft.sim.tools.ToolError
        Where a tool is missing or too old, or does not compile the model.
    """
    if not (place / "model").is_file():
        say()
        place.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
        try:
            tools.compiler()
            tools.make()
            (part / f"{top}.v").write_text(verilog(), encoding="utf-8")
            _compile(part, harness, name, top, defines, trace, large)
            shutil.rmtree(part / "obj")
            with contextlib.suppress(OSError):  # another process was faster: its model is as good
                part.rename(place)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return place / "model"


def _compile(place, harness, name, top, defines, trace, large):
    """``model`` of ``<top>.v`` in the folder ``place``."""
    flags = " ".join(["-O1" if large else "-O2", *(f"-D{define}" for define in defines)])
    pieces = ["--output-split", "5000", "--output-split-cfuncs", "500"] if large else []
    command = [
        str(tools.verilator().path), "--cc", "--exe", "--build", "-j", str(os.cpu_count() or 1),
        "-O3", "--x-assign", "fast", "--x-initial", "fast", *WAIVERS, "--top-module", top,
        "--Mdir", "obj", "-o", "../model", "-CFLAGS", flags,
        *pieces, *(["--trace-vcd"] if trace else []), f"{top}.v", str(harness),
    ]
    # Without it, models of several C++ files fail to link with their precompiled header.
    make_flags = f"{os.environ.get('MAKEFLAGS', '')} CFG_CXXFLAGS_PCH_I=-include".strip()
    try:
        run = subprocess.run(
            command, cwd=place, env={**os.environ, "MAKEFLAGS": make_flags}, timeout=LIMIT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
    except subprocess.TimeoutExpired:
        raise tools.ToolError(
            f"the {name} model must compile in {LIMIT} s, and did not"
        ) from None
    if run.returncode or not (place / "model").is_file():
        log = folder() / f"{name}.log"
        log.write_text(run.stdout, encoding="utf-8")
        raise tools.ToolError(
            f"Verilator must compile the {name} model, and ended with status"
            f" {run.returncode}: {run.stdout.strip().splitlines()[-1:]}; all it said is in {log}"
        )
