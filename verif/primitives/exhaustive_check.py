"""Simulates multipliers made of primitives with all pairs of operands."""

import subprocess
import tempfile
from pathlib import Path

from amaranth.hdl import Module, signed
from amaranth.lib import wiring

from weft.hw.export import to_verilog
from weft.hw.primitives import Primitives
from weft.sim import tools
from weft.sim.primitives import ECP5_MODELS

__all__ = ["exhaustive_check"]

BENCH = Path(__file__).with_name("product.v")


class _AlwaysEnabled(wiring.Component):
    """A multiplier whose pipeline advances in every cycle."""

    def __init__(self, multiplier):
        self.multiplier = multiplier
        names = ("a", "b", "product")
        super().__init__({name: multiplier.signature.members[name] for name in names})

    def elaborate(self, platform):
        m = Module()
        m.submodules.multiplier = multiplier = self.multiplier
        m.d.comb += [
            multiplier.a.eq(self.a), multiplier.b.eq(self.b), self.product.eq(multiplier.product),
        ]
        return m


def exhaustive_check(kind, *, width, models=None) -> str:
    """Simulate a signed multiplier in Icarus; returns ``PASS``, or ``FAIL`` and the wrong product.

    Parameters
    ----------
    kind : type
        `Multiplier`, or a class with its parameters and ports.
    width : int
        Bits of each operand.
    models : str, optional
        Verilog models of the primitives; by default, the ECP5's.

    Raises
    ------
    weft.sim.tools.ToolError
        If Icarus is missing.
    """
    multiplier = _AlwaysEnabled(kind(a=signed(width), b=signed(width)))
    texts = {
        "multiplier.v": to_verilog(multiplier, name="multiplier", platform=Primitives()),
        "models.v": ECP5_MODELS.read_text(encoding="utf-8") if models is None else models,
    }
    icarus = tools.icarus().path
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        command = [
            icarus, "-g2005", "-o", "product", "-s", "product", f"-Pproduct.WIDTH={width}",
            f"-Pproduct.LATENCY={kind.LATENCY}", BENCH, *texts,
        ]
        subprocess.run(command, cwd=folder, check=True, timeout=1800)
        run = subprocess.run(
            ["vvp", "-n", "product"], cwd=folder, check=True, capture_output=True, text=True,
            timeout=1800,
        )
    return run.stdout.strip()
