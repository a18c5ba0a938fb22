"""The protocol of a MAC leaf, and the plain leaf that any target and simulator takes."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Mac", "PlainMac"]


class Mac(wiring.Component):
    """``sum <= start + dot(a, b)``, with ``start`` 0, ``init`` or ``sum``: what every PE holds.

    A leaf is all of a PE's arithmetic; the array around it knows the class attributes below and
    nothing else. A step (``en``) takes ``depth`` pairs. Its effect is in :attr:`sum` LATENCY
    cycles later, and stays until the next step's. A result is ``C[i, j] = sum[i, j] + R[i] + D[j]``
    with R and D from `weft.hw.post.corrections` where CORRECTED; else it is the sum.

    A leaf with SLOTS = S over 1 holds S sums, one in each phase of S cycles: the step of cycle t
    works on sum ``t mod S``, and :attr:`sum` shows each LATENCY cycles after its phase.

    Parameters
    ----------
    depth : int
        Pairs a step.

    Attributes
    ----------
    a, b : In, ``depth`` values each
    en : In
        A step: the values count.
    clear : In
        With ``en``: start from 0.
    preload : In
        With ``en``: start from ``init``.
    init : In
        Where a preloaded sum starts; read in the cycle after its step.
    sum : Out
        The sum.
    """

    LATENCY: int
    SLOTS = 1
    CORRECTED = False
    A = signed(8)
    B = signed(8)
    ACC = signed(32)

    def __init__(self, *, depth):
        self.depth = depth
        super().__init__({
            "a": In(data.ArrayLayout(self.A, depth)),
            "b": In(data.ArrayLayout(self.B, depth)),
            "en": In(1),
            "clear": In(1),
            "preload": In(1),
            "init": In(self.ACC),
            "sum": Out(self.ACC),
        })

    def product(self):
        """What one step adds, as a combinational expression of ``a`` and ``b``."""
        raise NotImplementedError

    def elaborate(self, platform):
        """Two stages: the product, then the sum. A leaf of other stages replaces this whole."""
        m = Module()
        product = self.product()
        p_product = Signal(product.shape())
        p_en = Signal()
        p_clear = Signal()
        p_preload = Signal()
        start = Mux(p_clear, 0, Mux(p_preload, self.init, self.sum))
        m.d.sync += [
            p_product.eq(product),
            Cat(p_en, p_clear, p_preload).eq(Cat(self.en, self.clear, self.preload)),
        ]
        with m.If(p_en):
            m.d.sync += self.sum.eq(start + p_product)
        return m


class PlainMac(Mac):
    """``dot(a, b) = sum(a[d] * b[d])``, as the synthesis tool sees fit."""

    LATENCY = 2

    def product(self):
        return sum((self.a[d] * self.b[d] for d in range(1, self.depth)), self.a[0] * self.b[0])
