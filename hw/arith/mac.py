"""The protocol of a MAC cell, and the cells for any target and simulation."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.latencies import TWO_STAGE_MAC, tree

__all__ = [
    "FastInnerProductMac", "FastInnerProducts", "Mac", "PlainMac", "PlainProducts", "ProductsMac",
]


class Mac(wiring.Component):
    """``sum <= start + dot(a, b)``, where ``start`` is 0, ``init`` or ``sum``.

    A MAC cell is all the arithmetic of a PE. The array around it uses the class attributes below
    and nothing else. A step (``en`` is 1) takes ``depth`` pairs. The result of a step is in
    :attr:`sum` as many cycles later as the *latency* of the cell, and stays there until the next
    step's result. The latency is the value of :meth:`latency` for the depth of the cell: LATENCY,
    or more if a tree of products makes the cell slower.

    The result of the product is ``C[i, j] = sum[i, j]``, or ``C[i, j] = sum[i, j] + R[i] + D[j]``
    if CORRECTED, with R and D from `weft.hw.output.requantizer`.

    A cell with SLOTS of S > 1 holds S sums, one for each phase of S cycles: the step of cycle t
    adds to sum ``t mod S``, and :attr:`sum` shows each sum *latency* cycles after its phase.

    The start of a step is selected *latency* - SLOTS cycles after the step, when the sum returns to
    the adder.

    SQUARES tells whether the cell has a multiplier that reads squares from block RAM.

    OPERAND_DECODER is a component at the array's edge that turns a value of the operand buffers
    into an A or a B: its ``o`` follows its ``i`` by its LATENCY. START_DECODER turns a value of the
    C buffer into a START. Either is None if there is nothing to decode. A, B, ACC and START are the
    shapes of a value of A, of a value of B, of a sum and of a start value. START is None if sums
    start from 0.

    Parameters
    ----------
    depth : int
        Pairs a step.
    resource : str
        Multiply in "logic", in DSP blocks ("dsp") or in block RAM ("ram"), if the cell has several;
        the latency is the same.
    blocks : int, optional
        The most DSP blocks to use, if the cell can multiply in DSP blocks and logic at once.
    folded : bool
        Results leave through the sums: ``sum <= above`` in a cycle of ``shift``. The array gives no
        step whose sum would be written in that cycle. A folded cell has no ``clear``: after a drain
        its sum is 0, because the array shifts in 0 at the top.

    Attributes
    ----------
    a : In, ``depth`` x A
        Valid with ``en``.
    b : In, ``depth`` x B
        Valid with ``en``.
    en : In, 1 bit
        A step.
    clear : In, 1 bit; unless folded
        Start from 0; *latency* - SLOTS cycles after the step. Without a step, the sum may be
        cleared or kept.
    preload : In, 1 bit; if there is a START
        Start from ``init``; *latency* - SLOTS cycles after the step, or without a step.
    init : In, START; if there is a START
        Valid with ``preload``.
    shift : In, 1 bit; if folded
        Load ``above``.
    above : In, ACC; if folded
        The sum of the PE above; valid with ``shift``.
    sum : Out, ACC
        The sum, *latency* cycles after its step.
    """

    LATENCY: int
    SLOTS = 1
    CORRECTED = False
    SQUARES = False
    A = signed(8)
    B = signed(8)
    ACC = signed(32)
    START = None
    OPERAND_DECODER = None
    START_DECODER = None

    def __init__(self, *, depth, resource="logic", blocks=None, folded=False):
        self.depth = depth
        self.resource = resource
        self.blocks = blocks
        self.folded = folded
        control = {"shift": In(1), "above": In(self.ACC)} if folded else {"clear": In(1)}
        start = {} if self.START is None else {"preload": In(1), "init": In(self.START)}
        super().__init__({
            "a": In(data.ArrayLayout(self.A, depth)),
            "b": In(data.ArrayLayout(self.B, depth)),
            "en": In(1),
            **control,
            **start,
            "sum": Out(self.ACC),
        })

    @classmethod
    def latency(cls, depth):
        """The LATENCY of a cell of ``depth``."""
        return cls.LATENCY

    def product(self):
        """The value that a step adds, as a combinational expression of ``a`` and ``b``."""
        raise NotImplementedError

    def elaborate(self, platform):
        """Two stages: the product, then the sum. Cells with other stages or a START override it."""
        m = Module()
        product = self.product()
        p_product = Signal(product.shape())
        p_en = Signal()
        m.d.sync += [p_product.eq(product), p_en.eq(self.en)]
        start = self.sum if self.folded else Mux(self.clear, 0, self.sum)
        with m.If(p_en):
            m.d.sync += self.sum.eq(start + p_product)
        if self.folded:
            with m.If(self.shift):
                m.d.sync += self.sum.eq(self.above)
        return m


class PlainMac(Mac):
    """``dot(a, b) = sum(a[d] * b[d])``; the synthesis tool chooses the multipliers."""

    LATENCY = TWO_STAGE_MAC

    def product(self):
        return sum((self.a[d] * self.b[d] for d in range(1, self.depth)), self.a[0] * self.b[0])


class FastInnerProductMac(Mac):
    """``dot(a, b) = sum((a[d] + b[d+1]) * (a[d+1] + b[d])) - R - D``, over even d.

    ``R = sum(a[d] * a[d+1])`` is one number for each row of A, and ``D = sum(b[d] * b[d+1])`` is
    one for each column of B. `weft.hw.output.requantizer` computes both as operands are loaded, and
    subtracts them from the results. The MAC cell computes the first sum, with 9 x 9 bit
    multipliers. ``depth`` is even; an odd K is padded with a zero in both operands. All sums are
    modulo 2^32, so the result is exact.

    Source: S. Winograd, A New Algorithm for Inner Product, IEEE Trans. Computers C-17 (1968); T.
    Pogue and N. Nicolici, Fast Inner-Product Algorithms and Architectures for Deep Neural Network
    Accelerators, IEEE Trans. Computers (2024).
    """

    LATENCY = TWO_STAGE_MAC
    CORRECTED = True

    def product(self):
        terms = [
            (self.a[d] + self.b[d + 1]) * (self.a[d + 1] + self.b[d])
            for d in range(0, self.depth, 2)
        ]
        return sum(terms[1:], terms[0])


class ProductsMac(Mac):
    """A `Mac` that adds its products in a tree, one level a cycle."""

    @classmethod
    def products(cls, depth):
        """Number of products in a step."""
        raise NotImplementedError

    @classmethod
    def latency(cls, depth):
        return cls.LATENCY + tree(cls.products(depth))

    def factors(self, n):
        """Both factors of product ``n``; each is a list of values to add."""
        raise NotImplementedError


class PlainProducts(ProductsMac):
    """``dot(a, b) = sum(a[d] * b[d])``, with one multiplier for each pair."""

    @classmethod
    def products(cls, depth):
        return depth

    def factors(self, n):
        return [self.a[n]], [self.b[n]]


class FastInnerProducts(ProductsMac):
    """`weft.hw.arith.mac.FastInnerProductMac`, with one multiplier for two pairs."""

    CORRECTED = True

    @classmethod
    def products(cls, depth):
        return depth // 2

    def factors(self, n):
        d = 2 * n
        return [self.a[d], self.b[d + 1]], [self.a[d + 1], self.b[d]]
