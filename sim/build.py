"""Builds the Verilog and the simulation model of a Config, each once."""

import importlib.metadata
from pathlib import Path

import weft
import weft.hw
from weft.config import Config
from weft.dtypes import DTYPES
from weft.mac_cells import MAC_CELLS
from weft.registers import LATENCY
from weft.sim import cache, verilated
from weft.sim.cache import folder
from weft.targets import TARGETS

__all__ = ["folder", "model", "sources", "verilog"]

HARNESS = Path(__file__).with_name("harness.cpp")


def _sources():
    """The source files that the Verilog of a Config depends on."""
    root, hardware = (Path(package.__file__).parent for package in (weft, weft.hw))
    flat = root, root / "buses", root / "chip", root / "dtypes"
    folders = *(folder.glob("*.py") for folder in flat), hardware.rglob("*.py")
    paths = [path for folder in folders for path in sorted(folder)]
    return [path.read_bytes() for path in paths]


# The cache key uses the sources instead of the Verilog, which takes seconds to generate. They are
# read on import: the modules imported here do not change if the files are edited later.
_SOURCES = _sources()


def sources(*parts) -> list:
    """All that a design of Weft depends on, and ``parts``, for the cache key of its model."""
    registered = [
        Path(file).read_bytes()
        for registry in (DTYPES, MAC_CELLS, TARGETS)
        for file in registry.files("hardware", outside="weft")
    ]
    return [importlib.metadata.version("amaranth"), *_SOURCES, *registered, *parts]


def verilog(config: Config) -> str:
    """The Verilog of a Config from `weft.hw.export.verilog`, converted once."""
    def make(place):
        from weft.hw import export

        (place / "weft.v").write_text(export.verilog(config), encoding="utf-8")

    name = f"{config.name}-{cache.digest(*sources(repr(config)))}"
    place = cache.entry("verilog", name, make)
    return (place / "weft.v").read_text(encoding="utf-8")


def model(config: Config, *, trace: bool = False, say=lambda text: None) -> Path:
    """The executable model of ``config``, from the cache or newly built.

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
    return verilated.executable(
        "models", config.name, sources(repr(config)), lambda: verilog(config), HARNESS,
        top="weft", defines=defines, trace=trace,
        say=lambda: say(f"compiling the {config.name} model (once, about 10 to 60 s)"),
    )
