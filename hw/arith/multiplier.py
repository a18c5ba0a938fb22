"""A multiplier with all its registers: a DSP block of the ECP5, or what a tool makes of ``*``."""

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Multiplier"]

WIDTH = 18  # of an operand of the block


class Multiplier(wiring.Component):
    """``product <= a * b``, LATENCY steps (cycles with ``en``) later.

    The block multiplies 18 x 18 bits. Operands lie at its upper end, with zeros below: so do the
    bits of the product, and those below cost no routing. One register each is at the operands, in
    the block and at the product; no reset touches them.

    Parameters
    ----------
    a, b : shape
        Of 18 bits at most, signed or not.

    Attributes
    ----------
    en : In, 1 where nothing is said
        The pipeline moves on.
    zero : In
        ``a`` counts as 0.
    a, b : In
    product : Out

    Source: Lattice FPGA-TN-02205, ECP5 sysDSP Usage Guide: MULT18X18D.
    """

    LATENCY = 3

    def __init__(self, *, a, b):
        product = (Signal(a) * Signal(b)).shape()
        super().__init__({
            "en": In(1, init=1), "zero": In(1), "a": In(a), "b": In(b), "product": Out(product),
        })

    def elaborate(self, platform):
        m = Module()
        if platform is None:
            self._twin(m)
        else:
            self._block(m)
        return m

    def _twin(self, m):
        a = Signal.like(self.a, name="i_a", reset_less=True)
        b = Signal.like(self.b, name="i_b", reset_less=True)
        inside = Signal.like(self.product, name="p_product", reset_less=True)
        product = Signal.like(self.product, name="o_product", reset_less=True)
        with m.If(self.en):
            m.d.sync += [
                a.eq(Mux(self.zero, 0, self.a)), b.eq(self.b),
                inside.eq(a * b), product.eq(inside),
            ]
        m.d.comb += self.product.eq(product)

    def _block(self, m):
        operands = {"A": self.a, "B": self.b}
        product = Signal(2 * WIDTH)
        m.d.comb += self.product.eq(product[2 * WIDTH - len(self.product):])
        ports = {"i_CLK0": ClockSignal(), "i_CE0": self.en, "i_RST0": self.zero & self.en}
        for name, operand in operands.items():
            bits = Cat(Const(0, WIDTH - len(operand)), operand)
            ports |= {f"i_{name}{n}": bit for n, bit in enumerate(bits)}
            ports[f"i_SIGNED{name}"] = Const(int(operand.shape().signed))
        ports |= {f"o_P{n}": bit for n, bit in enumerate(product)}
        # RST1 is never raised: what the block resets is the first operand alone.
        resets = {"INPUTA": "RST0", "INPUTB": "RST1", "PIPELINE": "RST1", "OUTPUT": "RST1"}
        for register, reset in resets.items():
            ports |= {
                f"p_REG_{register}_CLK": "CLK0", f"p_REG_{register}_CE": "CE0",
                f"p_REG_{register}_RST": reset,
            }
        m.submodules.block = Instance("MULT18X18D", i_RST1=Const(0), **ports)
