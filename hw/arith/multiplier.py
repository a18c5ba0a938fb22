"""A multiplier with its pipeline registers: a DSP block of the ECP5, its twin, or in logic."""

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.latencies import DSP_MULTIPLIER

__all__ = ["HalvedMultiplier", "Multiplier", "PlainMultiplier"]

WIDTH = 18  # bits of an operand of the block


class Multiplier(wiring.Component):
    """``product <= a * b``, LATENCY steps (cycles with ``en``) later.

    The block multiplies 18 x 18 bits. Operands are at its upper end, with zeros below them. So the
    product is at the upper end too, and the bits below it need no routing. Operands, the block's
    pipeline and the product have a register each. No reset clears them.

    The twin is a behavioural model of the same latency, for simulation.

    Parameters
    ----------
    a, b : shape
        At most 18 bits, signed or unsigned.
    pipelined : bool
        Use the register of the block's pipeline. Without it the product comes a step earlier.

    Attributes
    ----------
    en : In, 1 bit, initially 1
        The pipeline advances.
    zero : In, 1 bit
        Use 0 instead of ``a``.
    a : In, ``a``
    b : In, ``b``
    product : Out, as wide as both factors together
        LATENCY steps after its factors; LATENCY - 1 if it is not pipelined.

    Source: Lattice FPGA-TN-02205, ECP5 sysDSP Usage Guide: MULT18X18D.
    """

    LATENCY = DSP_MULTIPLIER

    def __init__(self, *, a, b, pipelined=True):
        self.pipelined = pipelined
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
        product = a * b
        with m.If(self.en):
            m.d.sync += [a.eq(Mux(self.zero, 0, self.a)), b.eq(self.b)]
            for name in ("p_product", "o_product")[not self.pipelined :]:
                register = Signal.like(self.product, name=name, reset_less=True)
                m.d.sync += register.eq(product)
                product = register
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
        # RST1 stays 0: the block resets its first operand only, for ``zero``.
        resets = {"INPUTA": "RST0", "INPUTB": "RST1", "PIPELINE": "RST1", "OUTPUT": "RST1"}
        for register, reset in resets.items():
            used = self.pipelined or register != "PIPELINE"
            ports |= {
                f"p_REG_{register}_CLK": "CLK0" if used else "NONE",
                f"p_REG_{register}_CE": "CE0", f"p_REG_{register}_RST": reset,
            }
        m.submodules.block = Instance("MULT18X18D", i_RST1=Const(0), **ports)


class PlainMultiplier(Multiplier):
    """A `Multiplier` that the synthesis tool makes from ``*``, for any device."""

    def elaborate(self, platform):
        m = Module()
        self._twin(m)
        return m


class HalvedMultiplier(Multiplier):
    """A `Multiplier` in logic: both halves of ``b`` are multiplied, and a cycle later added.

    If it is not pipelined, one stage multiplies.
    """

    def elaborate(self, platform):
        m = Module()
        if platform is None or not self.pipelined:
            self._twin(m)
        else:
            self._halves(m)
        return m

    def _halves(self, m):
        a = Signal.like(self.a, name="i_a", reset_less=True)
        b = Signal.like(self.b, name="i_b", reset_less=True)
        half = len(b) // 2
        top = b[half:].as_signed() if b.shape().signed else b[half:]
        low, high = a * b[:half], a * top
        p_low = Signal(low.shape(), reset_less=True)
        p_high = Signal(high.shape(), reset_less=True)
        product = Signal.like(self.product, name="o_product", reset_less=True)
        with m.If(self.en):
            m.d.sync += [
                a.eq(Mux(self.zero, 0, self.a)), b.eq(self.b), p_low.eq(low), p_high.eq(high),
                product.eq(p_low + (p_high << half)),
            ]
        m.d.comb += self.product.eq(product)
