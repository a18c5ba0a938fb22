"""The protocol of a MAC leaf, and the plain leaf that any target and simulator takes."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Mac", "PlainMac"]


class Mac(wiring.Component):
    """``sum <= start + dot(a, b)``, with ``start`` 0, ``init`` or ``sum``: what every PE holds.

    A leaf is all of a PE's arithmetic; the array around it knows the class attributes below and
    nothing else. A step (``en``) takes ``depth`` pairs. Its effect is in :attr:`sum` LATENCY
    cycles later, or where more products make it later :meth:`latency`, and stays until the next
    step's. A result is ``C[i, j] = sum[i, j] + R[i] + D[j]``
    with R and D from `weft.hw.output.corrector` where CORRECTED; else it is the sum.

    A leaf with SLOTS = S over 1 holds S sums, one in each phase of S cycles: the step of cycle t
    works on sum ``t mod S``, and :attr:`sum` shows each LATENCY cycles after its phase.

    What a sum starts from is said LATENCY - SLOTS cycles after its step, when the sum comes round.

    OPERAND_DECODER, where there is one, is the component that makes an A or a B of a value in the
    operand buffers, at the array's edge: its ``o`` is its ``i`` LATENCY cycles later. So does
    START_DECODER for a START and the C buffer.

    Parameters
    ----------
    depth : int
        Pairs a step.
    dsp : bool
        Multiply in DSP blocks, where the leaf has a choice; as late as in logic.
    folded : bool
        Results leave through the sums: ``sum <= above`` in a cycle of ``shift``. No step takes
        effect then; and none clears, as the last of what is shifted in is 0.

    Attributes
    ----------
    a, b : In, ``depth`` values each, of shapes A and B
    en : In
        A step: the values count.
    clear : In, unless folded
        Start from 0, LATENCY - SLOTS cycles after the step; where there was none, the sum may be
        lost or stay.
    preload, init : In, where there is a START
        Start from ``init``, of that shape; at the same time, and with or without a step.
    shift, above : In, where folded
    sum : Out
        The sum, of shape ACC.
    """

    LATENCY: int
    SLOTS = 1
    CORRECTED = False
    A = signed(8)
    B = signed(8)
    ACC = signed(32)
    START = None
    OPERAND_DECODER = None
    START_DECODER = None

    def __init__(self, *, depth, dsp=False, folded=False):
        self.depth = depth
        self.dsp = dsp
        self.folded = folded
        orders = {"shift": In(1), "above": In(self.ACC)} if folded else {"clear": In(1)}
        start = {} if self.START is None else {"preload": In(1), "init": In(self.START)}
        super().__init__({
            "a": In(data.ArrayLayout(self.A, depth)),
            "b": In(data.ArrayLayout(self.B, depth)),
            "en": In(1),
            **orders,
            **start,
            "sum": Out(self.ACC),
        })

    @classmethod
    def latency(cls, depth):
        """LATENCY of a leaf of ``depth``."""
        return cls.LATENCY

    def product(self):
        """What one step adds, as a combinational expression of ``a`` and ``b``."""
        raise NotImplementedError

    def elaborate(self, platform):
        """Two stages: the product, then the sum. A leaf of other stages replaces this whole."""
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
    """``dot(a, b) = sum(a[d] * b[d])``, as the synthesis tool sees fit."""

    LATENCY = 2

    def product(self):
        return sum((self.a[d] * self.b[d] for d in range(1, self.depth)), self.a[0] * self.b[0])
