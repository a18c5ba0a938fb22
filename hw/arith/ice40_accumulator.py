"""The accumulators of the iCE40 MAC cells: in a DSP block, or in a carry chain."""

from amaranth.hdl import ClockSignal, Const, Instance, Module, Mux, ResetSignal, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.ice40_carry import LOAD_OR_ADD, chain
from weft.latencies import ICE40_DSP_ACCUMULATOR

__all__ = ["CarryChainAccumulator", "DspAccumulator", "registered"]


class Ice40Accumulator(wiring.Component):
    """``sum <= (0 if clear else sum) + term`` in a cycle of ``en``; otherwise it keeps its value.

    If folded, there is no ``clear``, and ``sum <= above`` in a cycle of ``shift``.

    Attributes
    ----------
    en : In, 1 bit
        Add ``term``; if folded, 0 in every cycle of ``shift``.
    clear : In, 1 bit; unless folded
        Start from 0.
    shift : In, 1 bit; if folded
        Load ``above``.
    above : In, signed 32 bits; if folded
        The sum of the PE above; valid with ``shift``.
    sum : Out, signed 32 bits
    """

    ACC = signed(32)

    def __init__(self, terms, *, folded):
        self.folded = folded
        control = {"shift": In(1), "above": In(self.ACC)} if folded else {"clear": In(1)}
        super().__init__({**terms, "en": In(1), **control, "sum": Out(self.ACC)})

    @property
    def write_en(self):
        """Whether the sum changes."""
        return self.en | self.shift if self.folded else self.en

    def next_sum(self, term):
        """The next sum, if it changes."""
        if self.folded:
            return Mux(self.shift, self.above, self.sum + term)
        return Mux(self.clear, 0, self.sum) + term


class CarryChainAccumulator(Ice40Accumulator):
    """An `Ice40Accumulator` in logic: one cell a bit, which adds the term or loads it.

    If folded, one more LUT a bit selects ``above`` or the term.

    Parameters
    ----------
    term : shape
        Signed.
    folded : bool

    Attributes
    ----------
    term : In, ``term``
    """

    def __init__(self, *, term, folded):
        super().__init__({"term": In(term)}, folded=folded)

    def elaborate(self, platform):
        m = Module()
        if platform is None:
            with m.If(self.write_en):
                m.d.sync += self.sum.eq(self.next_sum(self.term))
            return m
        load, term = Signal(), Signal(self.ACC)
        m.d.comb += [
            load.eq(self.shift if self.folded else self.clear),
            term.eq(Mux(self.shift, self.above, self.term) if self.folded else self.term),
        ]
        with m.If(self.write_en):
            m.d.sync += self.sum.eq(chain(m, LOAD_OR_ADD, load, self.sum, term))
        return m


class DspAccumulator(Ice40Accumulator):
    """An `Ice40Accumulator` of the term ``a * b``, in one SB_MAC16, LATENCY cycles later.

    ``en`` is LATENCY - 1 cycles later than ``a`` and ``b``.

    The block multiplies 16 x 16 bits and uses all of its registers. If folded, its accumulator
    adds to itself and loads ``above``. Otherwise it adds to its inputs C and D, which carry its sum
    or 0: so ``clear`` takes effect without latency.

    Parameters
    ----------
    a, b : shape
        Signed, at most 16 bits.
    folded : bool

    Attributes
    ----------
    a : In, ``a``
    b : In, ``b``

    Source: Lattice FPGA-TN-02007, DSP Function Usage Guide for iCE40 Devices.
    """

    LATENCY = ICE40_DSP_ACCUMULATOR

    def __init__(self, *, a, b, folded):
        super().__init__({"a": In(a), "b": In(b)}, folded=folded)

    def elaborate(self, platform):
        m = Module()
        if platform is None:
            value = registered(m, self.a) * registered(m, self.b)
            for _ in range(self.LATENCY - 2):
                value = registered(m, value)
            with m.If(self.write_en):
                m.d.sync += self.sum.eq(self.next_sum(value))
            return m
        operands = {}
        for name, value in (("A", self.a), ("B", self.b)):
            operands[f"i_{name}"] = extended = Signal(signed(16))
            m.d.comb += extended.eq(value)
        load = self.shift if self.folded else 0
        start = Signal(32)
        m.d.comb += start.eq(self.above if self.folded else Mux(self.clear, 0, self.sum))
        reset = ResetSignal(allow_reset_less=True)
        halves = {}
        for half, carry_select in (("TOP", 0b11), ("BOT", 0b00)):
            halves |= {
                f"p_{half}_8x8_MULT_REG": Const(1, 1),
                f"p_{half}OUTPUT_SELECT": Const(1, 2),  # the accumulator
                f"p_{half}ADDSUB_LOWERINPUT": Const(2, 2),  # adds the product of 16 x 16 bits
                f"p_{half}ADDSUB_UPPERINPUT": Const(not self.folded, 1),  # to itself, or to C and D
                f"p_{half}ADDSUB_CARRYSELECT": Const(carry_select, 2),  # TOP adds the carry of BOT
                f"i_ADDSUB{half}": Const(0, 1), f"i_OHOLD{half}": ~self.write_en,
                f"i_OLOAD{half}": load,
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


def registered(m, value):
    """``value``, one cycle later, in a register that the reset clears, as in a DSP block."""
    register = Signal(value.shape(), name="registered")
    m.d.sync += register.eq(value)
    return register
