"""The MAC cells of the iCE40, in DSP blocks of the UltraPlus or in logic, and their parts.

Accumulators and multipliers come first, the cells at the end.
"""

from amaranth.hdl import (
    Cat,
    ClockSignal,
    Const,
    Instance,
    Module,
    Mux,
    ResetSignal,
    Shape,
    Signal,
    signed,
)
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.mac import FastInnerProducts, PlainProducts, ProductsMac
from weft.hw.delay import pipeline
from weft.latencies import ICE40_DSP_ACCUMULATOR, ICE40_SKEWED_QUAD
from weft.mac_cells import MAC_CELLS

__all__ = [
    "ADD_MASKED", "ADD_MASKED_INVERTED", "COUNT_DOWN_OR_LOAD", "COUNT_UP_OR_LOAD", "LOAD_OR_ADD",
    "CarryChainAccumulator", "DspAccumulator", "DspMultiplier", "HalvesMultiplier",
    "Ice40FastInnerProductMac", "Ice40LogicFastInnerProductMac", "Ice40LogicPlainMac",
    "Ice40PlainMac", "LoadableCounter", "PairMultiplier", "QuadProduct", "SkewedQuadMac", "chain",
    "registered",
]


# The carry out of a cell depends on I1, I2 and the carry in. Its LUT also sees I0, the select.
COUNT_UP_OR_LOAD = 0xA3AC     # b ? select : a + carry
COUNT_DOWN_OR_LOAD = 0xCA3A   # b ? a - 1 + carry : select
LOAD_OR_ADD = 0xE1B4          # select ? b : a + b
ADD_MASKED = 0xC66C           # select ? a + b : a
ADD_MASKED_INVERTED = 0x3993  # ~(select ? a + b : a)


def chain(m, init, select, a, b, *, carry=0):
    """The function ``init`` of ``select``, ``a`` and ``b``; ``a`` and ``b`` are equally wide.

    ``select`` is 1 bit for all bits, or one for each. ``carry`` goes into the lowest bit: 0 or 1.
    """
    bits = []
    carry = Const(carry, 1)
    selects = [select] * len(a) if len(select) == 1 else select
    for choice, x, y in zip(selects, a, b, strict=True):
        bits.append(bit := Signal(name="chain"))
        m.submodules += Instance(
            "SB_LUT4", p_LUT_INIT=Const(init, 16),
            i_I0=choice, i_I1=x, i_I2=y, i_I3=carry, o_O=bit,
        )
        if len(bits) < len(a):
            next_carry = Signal(name="carry")
            m.submodules += Instance("SB_CARRY", i_I0=x, i_I1=y, i_CI=carry, o_CO=next_carry)
            carry = next_carry
    return Cat(bits)


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


class LoadableCounter(wiring.Component):
    """``value <= (start if load else value + 1)`` in a cycle of ``en``, in one logic cell a bit.

    Without it, a tool takes another LUT a bit, which selects ``start``. The register has no reset.

    Parameters
    ----------
    width : int
    down : bool
        Count down.

    Attributes
    ----------
    en, load : In, 1 bit each
    start : In, ``width`` bits
    value : Out, ``width`` bits
    """

    def __init__(self, width, *, down=False):
        self.down = down
        super().__init__({
            "en": In(1), "load": In(1), "start": In(width), "value": Out(width),
        })

    def elaborate(self, platform):
        m = Module()
        value = Signal.like(self.value, reset_less=True)
        m.d.comb += self.value.eq(value)
        following = Mux(self.load, self.start, value - 1 if self.down else value + 1)
        if platform is not None:
            # The carries see no ``start``.
            init = COUNT_DOWN_OR_LOAD if self.down else COUNT_UP_OR_LOAD
            counts = (~self.load if self.down else self.load).replicate(len(value))
            following = chain(m, init, self.start, value, counts, carry=not self.down)
        with m.If(self.en):
            m.d.sync += value.eq(following)
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
        At most 16 bits, signed or unsigned. The sum has the 32 bits of a product of unsigned ones.
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
        operands, signs = {}, {}
        for name, value in (("A", self.a), ("B", self.b)):
            operands[f"i_{name}"] = extended = Signal(signed(16))
            signs[f"p_{name}_SIGNED"] = Const(value.shape().signed, 1)
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
            **signs, p_MODE_8x8=Const(0, 1), p_NEG_TRIGGER=Const(0, 1),
            **halves, **operands, i_C=start[16:], i_D=start[:16], o_O=self.sum,
            **{f"i_{name}HOLD": Const(0, 1) for name in "ABCD"},
            **{f"i_{name}": Const(0, 1) for name in ("CI", "ACCUMCI", "SIGNEXTIN")},
        )
        return m


class DspMultiplier(wiring.Component):
    """``product <= a * b`` in one SB_MAC16, LATENCY cycles later.

    Parameters
    ----------
    a, b : shape
        At most 16 bits, signed or unsigned.

    Attributes
    ----------
    a : In, ``a``
    b : In, ``b``
    product : Out, 32 bits
        Signed if a factor is.
    """

    LATENCY = ICE40_DSP_ACCUMULATOR

    def __init__(self, *, a, b):
        is_signed = Shape.cast(a).signed or Shape.cast(b).signed
        super().__init__({"a": In(a), "b": In(b), "product": Out(Shape(32, is_signed))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.block = block = DspAccumulator(
            a=self.a.shape(), b=self.b.shape(), folded=False
        )
        m.d.comb += [
            block.a.eq(self.a), block.b.eq(self.b), block.en.eq(1), block.clear.eq(1),
            self.product.eq(block.sum),
        ]
        return m


def registered(m, value):
    """``value``, one cycle later, in a register that the reset clears, as in a DSP block."""
    register = Signal(value.shape(), name="registered")
    m.d.sync += register.eq(value)
    return register


class HalvesMultiplier(wiring.Component):
    """``low + (high << split) <= a * b``, LATENCY cycles later; each half of ``b`` has a product.

    Each bit of ``b`` has a row, which adds ``a`` if the bit is 1. The partial sum shifts right by
    one bit from row to row. The last bit of ``b`` has a negative weight: its row subtracts, as
    ``h - a = ~(~h + a)``. The first row of a half adds to nothing. A register follows the second
    row of a half, and the last one. The registers have no reset.

    Parameters
    ----------
    a, b : shape
        Signed; ``b`` has 6 bits or more.

    Attributes
    ----------
    a, b : In
        The factors.
    low : Out, signed
        ``a`` times the lower half of ``b``.
    high : Out, signed
        ``a`` times the upper half of ``b``.
    split : int
        Bits in the lower half of ``b``. That half is the larger one if ``b`` has an odd width,
        since the upper half needs more logic.
    """

    LATENCY = 2

    def __init__(self, *, a, b):
        a, b = (Shape.cast(shape).width for shape in (a, b))
        self.split = (b + 1) // 2
        super().__init__({
            "a": In(signed(a)), "b": In(signed(b)),
            "low": Out(signed(a + self.split)), "high": Out(signed(a + b - self.split)),
        })

    def elaborate(self, platform):
        m = Module()
        low, high = self.b[: self.split], self.b[self.split :]
        if platform is None:
            low, high = (
                pipeline(m, self.a * half, self.LATENCY, "product")
                for half in (low, high.as_signed())
            )
        else:
            low, high = (
                pipeline(m, self._rows(m, half, negative=half is high), 1, "product")
                for half in (low, high)
            )
        m.d.comb += [self.low.eq(low), self.high.eq(high)]
        return m

    def _rows(self, m, b, *, negative):
        """``a * b``; if ``negative``, the last bit of ``b`` has a negative weight."""
        a, count = self.a, len(b)
        row = a.as_unsigned() & b[0].replicate(len(a))
        inverted = False  # whether the row is the complement of the partial sum
        bits = []
        for n in range(1, count):
            if n == 2:
                a, b, row, bits = (
                    pipeline(m, a, 1, "a"), Cat(0, 0, pipeline(m, b[2:], 1, "b")),
                    pipeline(m, row, 1, "row"), [pipeline(m, Cat(bits), 1, "bits")],
                )
            bits.append(row[0] ^ inverted)
            shifted = Cat(row[1:], row[-1], row[-1])[: len(a) + 1]
            inverted = negative and n == count - 2
            init = ADD_MASKED_INVERTED if negative and n >= count - 2 else ADD_MASKED
            row = chain(m, init, b[n], shifted, Cat(a, a[-1]))
        return Cat(bits, row).as_signed()


# Outputs of a half of a DSP block: its adder, the register behind it, or its product of bytes.
BLOCK_SUM, BLOCK_REGISTER, BLOCK_PRODUCT = 0, 1, 2


def block_of_pairs(a, b, output, *, c=None, d=None, top, bottom):
    """An SB_MAC16 that multiplies 8 x 8 bits twice, and drives ``output``.

    ``top`` and ``bottom`` select the output of a half: `BLOCK_SUM`, `BLOCK_REGISTER` or
    `BLOCK_PRODUCT`. The adder of the upper half adds ``c`` to its product, and the one of the lower
    half ``d``. The operands and the products have registers.

    Source: Lattice FPGA-TN-02007, DSP Function Usage Guide for iCE40 Devices.
    """
    reset = ResetSignal(allow_reset_less=True)
    halves = {}
    for half, select in (("TOP", top), ("BOT", bottom)):
        halves |= {
            f"p_{half}_8x8_MULT_REG": Const(1, 1),
            f"p_{half}OUTPUT_SELECT": Const(select, 2),
            f"p_{half}ADDSUB_LOWERINPUT": Const(1, 2),  # adds the product of 8 x 8 bits
            f"p_{half}ADDSUB_UPPERINPUT": Const(1, 1),  # to C or D
            f"p_{half}ADDSUB_CARRYSELECT": Const(0, 2),
            **{f"i_{name}{half}": Const(0, 1) for name in ("ADDSUB", "OHOLD", "OLOAD")},
            **{f"i_{name}{half}": reset for name in ("IRST", "ORST")},
        }
    return Instance(
        "SB_MAC16", i_CLK=ClockSignal(), i_CE=Const(1, 1),
        **{f"p_{name}_REG": Const(name in "AB", 1) for name in "ABCD"},
        **{f"p_PIPELINE_16x16_MULT_REG{n}": Const(0, 1) for n in (1, 2)},
        **{f"p_{name}": Const(1, 1) for name in ("A_SIGNED", "B_SIGNED", "MODE_8x8")},
        p_NEG_TRIGGER=Const(0, 1), **halves,
        i_A=a, i_B=b, i_C=Const(0, 16) if c is None else c, i_D=Const(0, 16) if d is None else d,
        o_O=output,
        **{f"i_{name}HOLD": Const(0, 1) for name in "ABCD"},
        **{f"i_{name}": Const(0, 1) for name in ("CI", "ACCUMCI", "SIGNEXTIN")},
    )


class PairMultiplier(wiring.Component):
    """``product[n] <= a[n] * b[n]``, LATENCY cycles later, all of it in an SB_MAC16.

    The block multiplies 8 x 8 bits twice and uses all of its registers: at its operands, at its
    products, and at its adders, which add 0.

    Attributes
    ----------
    a, b : In, 2 x signed 8 bits
        The factors.
    product : Out, 2 x signed 16 bits
        LATENCY cycles after the factors.

    Source: Lattice FPGA-TN-02007, DSP Function Usage Guide for iCE40 Devices.
    """

    LATENCY = 3

    a: In(data.ArrayLayout(signed(8), 2))
    b: In(data.ArrayLayout(signed(8), 2))
    product: Out(data.ArrayLayout(signed(16), 2))

    def elaborate(self, platform):
        m = Module()
        if platform is None:
            for a, b, product in zip(self.a, self.b, self.product, strict=True):
                p_product = registered(m, registered(m, a) * registered(m, b))
                m.d.sync += product.eq(p_product)
            return m
        m.submodules.block = block_of_pairs(
            self.a.as_value(), self.b.as_value(), self.product.as_value(), top=BLOCK_REGISTER,
            bottom=BLOCK_REGISTER,
        )
        return m


class QuadProduct(wiring.Component):
    """``sum = a[0] * b[0] + ... + a[3] * b[3]``, all but its two highest bits in two SB_MAC16.

    Pairs 2 and 3 come a cycle later than pairs 0 and 1, so each adder of 16 bits takes the sum of
    the one before and its own product: the first block adds products 0 and 1, and the second one
    products 2 and 3 to their sum. A sum modulo 2^16 and the next one differ by a product, which is
    in -2^14 + 128..2^14. So their two highest bits tell whether the true sum passed 0 or 2^16.

    Between two registers, a sum passes two adders, of 3.5 ns each, and no logic cell: nextpnr does
    not know the first of them.

    Attributes
    ----------
    a, b : In, 4 x signed 8 bits
    sum : Out, signed 18 bits
        `LATENCY` cycles after pairs 0 and 1.

    Source: Lattice FPGA-TN-02007, DSP Function Usage Guide for iCE40 Devices.
    """

    LATENCY = ICE40_SKEWED_QUAD - 1

    a: In(data.ArrayLayout(signed(8), 4))
    b: In(data.ArrayLayout(signed(8), 4))
    sum: Out(signed(18))

    def elaborate(self, platform):
        m = Module()
        if platform is None:
            products = [
                registered(m, registered(m, a) * registered(m, b))
                for a, b in zip(self.a, self.b, strict=True)
            ]
            first = registered(m, products[0] + products[1])
            m.d.sync += self.sum.eq(first + products[2] + products[3])
            return m
        product, pair, triple, quad = (
            Signal(16, name=name) for name in ("product", "pair", "triple", "quad")
        )  # sums of the first products, modulo 2^16
        a, b = self.a.as_value(), self.b.as_value()
        first, second = (Signal(32, name="output") for _ in range(2))
        m.submodules.first = block_of_pairs(
            a[:16], b[:16], first, c=product, top=BLOCK_REGISTER, bottom=BLOCK_PRODUCT
        )
        m.submodules.second = block_of_pairs(
            a[16:], b[16:], second, d=pair, c=triple, top=BLOCK_REGISTER, bottom=BLOCK_SUM
        )
        m.d.comb += [Cat(product, pair).eq(first), Cat(triple, quad).eq(second)]
        negative, pair_negative, triple_negative, triple_high, is_most = (
            Signal(name=name) for name in
            ("negative", "pair_negative", "triple_negative", "triple_high", "is_most")
        )
        m.d.sync += [
            negative.eq(product[15]),
            triple_negative.eq(Mux(
                pair_negative, triple[14:].any(), triple[14:].all() & ~pair[15]
            )),
            triple_high.eq(triple[15]),
        ]
        m.d.comb += [
            # 32,768 is the only sum of two products that is not below 2^15.
            pair_negative.eq(pair[15] & (negative | pair[14])),
            self.sum[:16].eq(quad),
            self.sum[17].eq(Mux(
                triple_negative, quad[14:].any() | ~triple_high, quad[14:].all() & ~triple_high
            )),
            # 65,536 is the only sum of four products that is not below 2^16.
            is_most.eq(~triple_negative & triple_high & ~quad[14:].any()),
            self.sum[16].eq(self.sum[17] | is_most),
        ]
        return m


class SkewedQuadMac(wiring.Component):
    """``sum <= (0 if clear else sum) + dot(a, b)``, as a `Mac` of depth 4.

    Pairs 2 and 3 of a step come a cycle later than pairs 0 and 1.

    Attributes
    ----------
    a, b : In, 4 x signed 8 bits
    en : In, 1 bit
        A step: valid with pairs 0 and 1.
    clear : In, 1 bit
        Start from 0; `LATENCY` - 1 cycles after the step.
    sum : Out, signed 32 bits
        `LATENCY` cycles after the step.
    """

    LATENCY = ICE40_SKEWED_QUAD

    a: In(data.ArrayLayout(signed(8), 4))
    b: In(data.ArrayLayout(signed(8), 4))
    en: In(1)
    clear: In(1)
    sum: Out(signed(32))

    def elaborate(self, platform):
        m = Module()
        m.submodules.product = product = QuadProduct()
        m.submodules.accumulator = accumulator = CarryChainAccumulator(
            term=product.sum.shape(), folded=False
        )
        m.d.comb += [
            product.a.eq(self.a), product.b.eq(self.b), accumulator.term.eq(product.sum),
            accumulator.en.eq(pipeline(m, self.en, product.LATENCY, "en")),
            accumulator.clear.eq(self.clear), self.sum.eq(accumulator.sum),
        ]
        return m


class Ice40Mac(ProductsMac):
    """A `Mac` in DSP blocks or in logic, with the same latency.

    It has one of three structures:

    * One product, in DSP: a block with multiplier and accumulator.
    * Products of bytes, in DSP: a block for two products, which has three stages; a tree of adders,
      one stage a level; the sum. Products for which there is no block are in logic: the first rows
      of a product, its halves, and their sum are three stages, too.
    * Any products, in logic: their first rows; their halves; the tree, whose last level adds the
      halves; the sum.

    The products of each cycle go through all stages. Without a step (``en`` is 0) the sum keeps its
    value instead.
    """

    LATENCY = MAC_CELLS["plain_ice40up"].latency
    BLOCKS = True  # the device has DSP blocks

    def elaborate(self, platform):
        m = Module()
        factors = [
            [sum(parts[1:], parts[0]) for parts in self.factors(n)]
            for n in range(self.products(self.depth))
        ]
        structure = self._in_logic
        blocks = self.resource == "dsp" and self.BLOCKS and self.blocks != 0
        if blocks and len(factors) == 1:
            structure = self._in_block
        elif blocks and all(len(factor) <= 8 for pair in factors for factor in pair):
            structure = self._in_pairs
        m.submodules.accumulator = accumulator = structure(m, factors)
        m.d.comb += [
            accumulator.en.eq(pipeline(m, self.en, self.latency(self.depth) - 1, "en")),
            self.sum.eq(accumulator.sum),
        ]
        if self.folded:
            m.d.comb += [accumulator.shift.eq(self.shift), accumulator.above.eq(self.above)]
        else:
            m.d.comb += accumulator.clear.eq(self.clear)
        return m

    def _in_block(self, m, factors):
        """One product and its sum in a DSP block."""
        ((a, b),) = factors
        accumulator = DspAccumulator(a=a.shape(), b=b.shape(), folded=self.folded)
        m.d.comb += [accumulator.a.eq(a), accumulator.b.eq(b)]
        return accumulator

    def _in_pairs(self, m, factors):
        """Two products of bytes in each DSP block, the others and the sum in logic."""
        terms = []
        in_blocks = len(factors) if self.blocks is None else min(2 * self.blocks, len(factors))
        for n in range(0, in_blocks, 2):
            m.submodules[f"product_{n}"] = pair = PairMultiplier()
            for i, (a, b) in enumerate(factors[n : min(n + 2, in_blocks)]):
                m.d.comb += [pair.a[i].eq(a), pair.b[i].eq(b)]
                terms.append(pair.product[i])
        for n in range(in_blocks, len(factors)):
            product = self._multiplier(m, n, *factors[n])
            terms += self._level(m, [product.low, product.high << product.split])
        while len(terms) > 1:
            terms = self._level(m, terms)
        accumulator = CarryChainAccumulator(term=terms[0].shape(), folded=self.folded)
        m.d.comb += accumulator.term.eq(terms[0])
        return accumulator

    def _in_logic(self, m, factors):
        """Products and their sum in logic."""
        lows, highs = [], []
        for n, (a, b) in enumerate(factors):
            product = self._multiplier(m, n, a, b)
            lows.append(product.low)
            highs.append(product.high)
        while len(lows) > 1:
            lows, highs = (self._level(m, terms) for terms in (lows, highs))
        (term,) = self._level(m, [lows[0], highs[0] << product.split])
        accumulator = CarryChainAccumulator(term=term.shape(), folded=self.folded)
        m.d.comb += accumulator.term.eq(term)
        return accumulator

    def _multiplier(self, m, n, a, b):
        """The multiplier in logic for product ``n``."""
        m.submodules[f"product_{n}"] = product = HalvesMultiplier(a=a.shape(), b=b.shape())
        m.d.comb += [product.a.eq(a), product.b.eq(b)]
        return product

    @staticmethod
    def _level(m, terms):
        """A level of the tree: sums of two terms, one cycle later."""
        sums = []
        for n in range(0, len(terms), 2):
            value = sum(terms[n + 1 : n + 2], terms[n])
            sums.append(term := Signal(value.shape(), name="term", reset_less=True))
            m.d.sync += term.eq(value)
        return sums


class Ice40PlainMac(PlainProducts, Ice40Mac):
    """An iCE40UP MAC cell with plain products."""


class Ice40FastInnerProductMac(FastInnerProducts, Ice40Mac):
    """An iCE40UP MAC cell with fast inner products."""


class Ice40LogicPlainMac(Ice40PlainMac):
    """A MAC cell for an iCE40 without DSP blocks, with plain products."""

    BLOCKS = False


class Ice40LogicFastInnerProductMac(Ice40FastInnerProductMac):
    """A MAC cell for an iCE40 without DSP blocks, with fast inner products."""

    BLOCKS = False
