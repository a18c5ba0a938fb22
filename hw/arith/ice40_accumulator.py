"""What a leaf of the iCE40 sums up in: the accumulator of a DSP block, or a carry chain."""

from amaranth.hdl import ClockSignal, Const, Instance, Module, Mux, ResetSignal, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.ice40_carry import ONLY, chain

__all__ = ["CarryChainAccumulator", "DspAccumulator", "held"]


class Ice40Accumulator(wiring.Component):
    """``sum <= (0 if clear else sum) + term``; folded, ``sum <= above if shift else sum + term``.

    Folded, ``term`` is 0 while ``shift``.

    Attributes
    ----------
    clear : In, unless folded
    shift, above : In, where folded
    sum : Out
    """

    ACC = signed(32)

    def __init__(self, terms, *, folded):
        self.folded = folded
        orders = {"shift": In(1), "above": In(self.ACC)} if folded else {"clear": In(1)}
        super().__init__({**terms, **orders, "sum": Out(self.ACC)})

    def following(self, term):
        """The next sum."""
        if self.folded:
            return Mux(self.shift, self.above, self.sum + term)
        return Mux(self.clear, 0, self.sum) + term


class CarryChainAccumulator(Ice40Accumulator):
    """A `Ice40Accumulator` of any terms: a cell a bit, which takes the term alone where it has to.

    Folded, another LUT a bit has put ``above`` in its place.

    Parameters
    ----------
    term : shape
        Signed.
    folded : bool

    Attributes
    ----------
    term : In
    """

    def __init__(self, *, term, folded):
        super().__init__({"term": In(term)}, folded=folded)

    def elaborate(self, platform):
        m = Module()
        if platform is None:
            m.d.sync += self.sum.eq(self.following(self.term))
            return m
        alone, term = Signal(), Signal(self.ACC)
        m.d.comb += [
            alone.eq(self.shift if self.folded else self.clear),
            term.eq(Mux(self.shift, self.above, self.term) if self.folded else self.term),
        ]
        m.d.sync += self.sum.eq(chain(m, ONLY, alone, self.sum, term))
        return m


class DspAccumulator(Ice40Accumulator):
    """A `Ice40Accumulator` whose term is ``a * b``: all of it in an SB_MAC16, LATENCY cycles later.

    The block multiplies 16 x 16 bits, with all of its registers on. Its accumulator adds to itself
    and is loaded from ``above``; or, to be cleared in time, adds to what is fed back to it.

    Parameters
    ----------
    a, b : shape
        Signed, of 16 bits at most.
    folded : bool

    Attributes
    ----------
    a, b : In

    Source: Lattice FPGA-TN-02007, DSP Function Usage Guide for iCE40 Devices.
    """

    LATENCY = 4

    def __init__(self, *, a, b, folded):
        super().__init__({"a": In(a), "b": In(b)}, folded=folded)

    def elaborate(self, platform):
        m = Module()
        if platform is None:
            value = held(m, self.a) * held(m, self.b)
            for _ in range(self.LATENCY - 2):
                value = held(m, value)
            m.d.sync += self.sum.eq(self.following(value))
            return m
        operands = {}
        for name, value in (("A", self.a), ("B", self.b)):
            operands[f"i_{name}"] = wide = Signal(signed(16))
            m.d.comb += wide.eq(value)
        load = self.shift if self.folded else 0
        given = self.above if self.folded else Mux(self.clear, 0, self.sum)
        start = Signal(32)
        m.d.comb += start.eq(given)
        reset = ResetSignal(allow_reset_less=True)
        halves = {}
        for half, order in (("TOP", 0b11), ("BOT", 0b00)):
            halves |= {
                f"p_{half}_8x8_MULT_REG": Const(1, 1),
                f"p_{half}OUTPUT_SELECT": Const(1, 2),  # the accumulator
                f"p_{half}ADDSUB_LOWERINPUT": Const(2, 2),  # adds the product of 16 x 16 bits
                f"p_{half}ADDSUB_UPPERINPUT": Const(not self.folded, 1),  # to itself, or to C and D
                f"p_{half}ADDSUB_CARRYSELECT": Const(order, 2),  # the upper half adds the carry
                f"i_OLOAD{half}": load,
                **{f"i_{name}{half}": Const(0, 1) for name in ("ADDSUB", "OHOLD")},
                **{f"i_{name}{half}": reset for name in ("IRST", "ORST")},
            }
        m.submodules.block = Instance(
            "SB_MAC16", i_CLK=ClockSignal(), i_CE=Const(1, 1),
            **{f"p_{name}_REG": Const(name in "AB", 1) for name in "ABCD"},
            **{f"p_PIPELINE_16x16_MULT_REG{n}": Const(1, 1) for n in (1, 2)},
            **{f"p_{name}": Const(1, 1) for name in ("A_SIGNED", "B_SIGNED")},
            p_MODE_8x8=Const(0, 1), p_NEG_TRIGGER=Const(0, 1),
            **halves, **operands, i_C=start[16:], i_D=start[:16], o_O=self.sum,
            **{f"i_{name}HOLD": Const(0, 1) for name in "ABCD"},
            **{f"i_{name}": Const(0, 1) for name in ("CI", "ACCUMCI", "SIGNEXTIN")},
        )
        return m


def held(m, value):
    """``value`` in a register of a block, which the block's reset clears."""
    register = Signal(value.shape(), name="held")
    m.d.sync += register.eq(value)
    return register
