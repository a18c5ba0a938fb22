"""What simulations of a Config are made from: its Verilog and its model, each built once."""

import importlib.metadata
from pathlib import Path

import weft
import weft.hw
from weft.config import Config
from weft.registers import LATENCY
from weft.sim import cache, verilated
from weft.sim.cache import folder

__all__ = ["folder", "model", "sources", "verilog"]

HARNESS = Path(__file__).with_name("harness.cpp")


def _sources():
    """The texts that the Verilog of a Config follows from."""
    root, hardware = (Path(package.__file__).parent for package in (weft, weft.hw))
    paths = [*sorted(root.glob("*.py")), *sorted(hardware.rglob("*.py"))]
    return [path.read_bytes() for path in paths]


# They stand for the Verilog, which takes seconds to make. As they are now: a program that has
# imported them goes on with these texts, even if somebody edits the files meanwhile.
_SOURCES = _sources()


def sources(*more) -> list:
    """Everything that a design of Weft follows from, for the key of its model, and ``more``."""
    return [importlib.metadata.version("amaranth"), *_SOURCES, *more]


def verilog(config: Config) -> str:
    """The Verilog of a Config, as `weft.hw.export.verilog` gives it; converted once."""
    def make(place):
        from weft.hw import export

        (place / "weft.v").write_text(export.verilog(config), encoding="utf-8")

    name = f"{config.name}-{cache.digest(*sources(repr(config)))}"
    place = cache.entry("verilog", name, make)
    return (place / "weft.v").read_text(encoding="utf-8")


def model(config: Config, *, trace: bool = False, say=lambda text: None) -> Path:
    """The program that simulates ``config``: the one built before, or a new one.

    Parameters
    ----------
    trace : bool
        Whether the model can write waveforms; it is slower then.
    say : callable
        Called with a line of text before a compilation.

    Raises
    ------
    weft.sim.tools.ToolError
        Where a tool is missing or too old, or does not compile the model.
    """
    defines = [
        f"BYTES_IN={config.bytes_in}", f"BYTES_OUT={config.bytes_out}",
        f"REGISTER_LATENCY={LATENCY}", *["TRACE"] * trace,
    ]
    return verilated.program(
        "models", config.name, sources(repr(config)), lambda: verilog(config), HARNESS,
        top="weft", defines=defines, trace=trace,
        say=lambda: say(f"compiling the {config.name} model (once, some 10 to 60 s)"),
    )
