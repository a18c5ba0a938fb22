"""Builds the simulated accelerator of a Config, once: Verilog, Verilator, a program."""

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
from weft.sim import tools

__all__ = ["folder", "model"]

# What Yosys writes and Verilator remarks on: widths follow Verilog's own rules in expressions that
# Yosys has made explicit, and its priority cases overlap by design.
WAIVERS = ["-Wno-WIDTHEXPAND", "-Wno-WIDTHTRUNC", "-Wno-CASEOVERLAP", "-Wno-UNOPTFLAT"]
LIMIT = 3600  # seconds a compilation may take


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
    verilator = tools.verilator()
    key = f"{config.name}-{_key(config, verilator.version, trace)}"
    place = folder() / "models" / key
    if not (place / "model").is_file():
        say(f"compiling the {config.name} model (once, some 20 to 60 s)")
        place.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=place.parent))
        try:
            _compile(config, part, trace)
            shutil.rmtree(part / "obj")
            with contextlib.suppress(OSError):  # another process was faster: its model is as good
                part.rename(place)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return place / "model"


def _key(config, version, trace) -> str:
    """16 digits that change with all that the program is made from."""
    root, hardware = (Path(package.__file__).parent for package in (weft, weft.hw))
    digest = hashlib.sha256(f"{config!r} {version} {trace}".encode())
    digest.update(importlib.metadata.version("amaranth").encode())
    sources = [*sorted(root.glob("*.py")), *sorted(hardware.rglob("*.py"))]
    for source in [*sources, _harness(), Path(__file__)]:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _harness() -> Path:
    return Path(__file__).with_name("model.cpp")


def _compile(config, place, trace):
    """``model`` and ``weft.v`` in the folder ``place``."""
    from weft.hw.export import verilog

    tools.compiler()
    tools.make()
    (place / "weft.v").write_text(verilog(config), encoding="utf-8")
    defines = f"-DBYTES_IN={config.bytes_in} -DBYTES_OUT={config.bytes_out}"
    command = [
        str(tools.verilator().path), "--cc", "--exe", "--build", "-j", str(os.cpu_count() or 1),
        "-O3", "--x-assign", "fast", "--x-initial", "fast", *WAIVERS, "--top-module", "weft",
        "--Mdir", "obj", "-o", "../model", "-CFLAGS", f"-O2 {defines}{' -DTRACE' * trace}",
        *(["--trace-vcd"] if trace else []), "weft.v", str(_harness()),
    ]
    # Without it, models of several C++ files fail to link with their precompiled header.
    flags = f"{os.environ.get('MAKEFLAGS', '')} CFG_CXXFLAGS_PCH_I=-include".strip()
    try:
        run = subprocess.run(
            command, cwd=place, env={**os.environ, "MAKEFLAGS": flags}, timeout=LIMIT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
    except subprocess.TimeoutExpired:
        raise tools.ToolError(
            f"the {config.name} model must compile in {LIMIT} s, and did not"
        ) from None
    if run.returncode or not (place / "model").is_file():
        log = folder() / f"{config.name}.log"
        log.write_text(run.stdout, encoding="utf-8")
        raise tools.ToolError(
            f"Verilator must compile the {config.name} model, and ended with status"
            f" {run.returncode}: {run.stdout.strip().splitlines()[-1:]}; all it said is in {log}"
        )
