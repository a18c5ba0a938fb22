"""Simulates multipliers made of primitives with all pairs of operands."""

from pathlib import Path

from amaranth.hdl import Module, signed
from amaranth.lib import wiring

from verif.primitives.icarus import run_bench
from weft.hw.export import to_verilog
from weft.hw.primitives import Primitives
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
    texts["product.v"] = BENCH.read_text(encoding="utf-8")
    return run_bench(texts, "product", WIDTH=width, LATENCY=kind.LATENCY)
