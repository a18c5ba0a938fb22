"""Multipliers built of primitives, simulated with all pairs of operands that there are."""

import subprocess
import tempfile
from pathlib import Path

from amaranth.hdl import Module, signed
from amaranth.lib import wiring

from weft.hw.export import to_verilog
from weft.hw.primitives import Primitives
from weft.sim import tools
from weft.sim.primitives.proof import MODELS

__all__ = ["exhaustive_check"]

BENCH = MODELS.with_name("product.v")


class _Always(wiring.Component):
    """A multiplier that moves on in every cycle."""

    def __init__(self, multiplier):
        self.multiplier = multiplier
        names = ("a", "b", "product")
        super().__init__({name: multiplier.signature.members[name] for name in names})

    def elaborate(self, platform):
        m = Module()
        m.submodules.multiplier = inside = self.multiplier
        m.d.comb += [
            inside.a.eq(self.a), inside.b.eq(self.b), self.product.eq(inside.product),
        ]
        return m


def exhaustive_check(kind, *, width, models=None) -> str:
    """What Icarus says of a multiplier of ``width`` bits, signed, and all pairs of operands.

    It says ``ALL RIGHT``, or which product was ``WRONG``. Raises `weft.sim.tools.ToolError` where
    there is no Icarus.

    Parameters
    ----------
    kind : type
        `Multiplier`, or another with its parameters and ports.
    width : int
    models : str, optional
        Other models of the primitives, in Verilog.
    """
    multiplier = _Always(kind(a=signed(width), b=signed(width)))
    texts = {
        "multiplier.v": to_verilog(multiplier, name="multiplier", platform=Primitives()),
        "models.v": MODELS.read_text(encoding="utf-8") if models is None else models,
    }
    icarus = tools.icarus().path
    with tempfile.TemporaryDirectory() as place:
        for name, text in texts.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        command = [
            icarus, "-g2005", "-o", "product", "-s", "product", f"-Pproduct.WIDTH={width}",
            f"-Pproduct.LATENCY={kind.LATENCY}", BENCH, *texts,
        ]
        subprocess.run(command, cwd=place, check=True, timeout=1800)
        run = subprocess.run(
            ["vvp", "-n", "product"], cwd=place, check=True, capture_output=True, text=True,
            timeout=1800,
        )
    return run.stdout.strip()
