"""A signed multiplier that subtracts two squares, which it reads from a block RAM of the ECP5."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.arith.carry import ADD, SUB_MASKED, chain
from weft.hw.delay import pipeline
from weft.hw.fabrics.dp16kd import ADDRESS_BITS, PORT_BITS, dp16kd
from weft.latencies import LOGIC_MULTIPLIER

__all__ = ["SquareMultiplier"]

_BITS = 10  # of a sum of two factors; the block has 1,024 words of 18 bits
_TABLE = [n * n // 4 for n in (*range(1 << _BITS - 1), *range(-(1 << _BITS - 1), 0))]


class SquareMultiplier(wiring.Component):
    """``product <= a * b``, LATENCY cycles later; no reset clears the pipeline.

    ``a * b = q(a + b) - q(a - b)`` with ``q(n) = n * n // 4``. The result is exact, because
    ``a + b`` and ``a - b`` are both even or both odd. A block RAM holds ``q``, and its two ports
    read both values in a cycle. The stages: the operands; their sum and their difference, in the
    address registers of the block; both squares, in its output registers; their difference.

    Parameters
    ----------
    a, b : shape
        Signed, at most 9 bits.

    Attributes
    ----------
    zero : In, 1 bit
        Use 0 instead of ``a``.
    a : In, ``a``
    b : In, ``b``
    product : Out, as wide as both factors together
        LATENCY cycles after its factors.
    """

    LATENCY = LOGIC_MULTIPLIER

    def __init__(self, *, a, b):
        super().__init__({
            "zero": In(1), "a": In(a), "b": In(b), "product": Out((Signal(a) * Signal(b)).shape()),
        })

    def elaborate(self, platform):
        m = Module()
        a = Signal.like(self.a, name="i_a", reset_less=True)
        b = Signal.like(self.b, name="i_b", reset_less=True)
        m.d.sync += [a.eq(Mux(self.zero, 0, self.a)), b.eq(self.b)]
        if platform is None:
            m.d.comb += self.product.eq(pipeline(m, a * b, self.LATENCY - 1, "product"))
            return m
        plus, minus = self._squares(m, a, b)
        difference = chain(m, *(
            (SUB_MASKED, plus[n], minus[n], Const(1)) for n in range(len(self.product))
        ), carry=1)
        m.d.comb += self.product.eq(pipeline(m, difference.as_signed(), 1, "o_product"))
        return m

    @staticmethod
    def _squares(m, a, b):
        """``q(a + b)`` and ``q(a - b)``, two cycles later."""
        bits = [(a[min(n, len(a) - 1)], b[min(n, len(b) - 1)]) for n in range(_BITS)]
        addresses = {
            "A": chain(m, *((ADD, *pair) for pair in bits)),
            "B": chain(m, *((SUB_MASKED, *pair, Const(1)) for pair in bits), carry=1),
        }
        ports = {f"i_WE{port}": Const(0) for port in "AB"}
        squares = {port: Signal(PORT_BITS, name=f"square_{port}") for port in "AB"}
        for port, address in addresses.items():
            below = Const(0, ADDRESS_BITS - _BITS)
            ports |= {f"i_AD{port}{n}": bit for n, bit in enumerate(Cat(below, address))}
            ports |= {f"i_DI{port}{n}": Const(0) for n in range(PORT_BITS)}
            ports |= {f"o_DO{port}{n}": bit for n, bit in enumerate(squares[port])}
        m.submodules.block = dp16kd(ports, width_a=PORT_BITS, width_b=PORT_BITS, table=_TABLE)
        return squares["A"], squares["B"]
