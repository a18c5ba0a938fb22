"""A signed multiplier that subtracts two squares, which it reads from a block RAM of the ECP5."""

from amaranth.hdl import Cat, Const, Signal

from weft.hw.arith.carry import ADD, SUB_MASKED, chain
from weft.hw.arith.logic import LogicMultiplier
from weft.hw.delay import pipeline
from weft.hw.fabrics.dp16kd import ADDRESS_BITS, PORT_BITS, dp16kd

__all__ = ["SquareMultiplier"]

_BITS = 10  # of a sum of two factors; the block has 1,024 words of 18 bits
_TABLE = [n * n // 4 for n in (*range(1 << _BITS - 1), *range(-(1 << _BITS - 1), 0))]


class SquareMultiplier(LogicMultiplier):
    """A `LogicMultiplier` with the same ports and the same latency.

    ``a * b = q(a + b) - q(a - b)`` with ``q(n) = n * n // 4``. The result is exact, because
    ``a + b`` and ``a - b`` are both even or both odd. A block RAM holds ``q``, and its two ports
    read both values in a cycle. The stages: the operands; their sum and their difference, in the
    address registers of the block; both squares, in its output registers; their difference.

    Parameters
    ----------
    a, b : shape
        Signed, at most 9 bits.
    """

    def _product(self, m, a, b):
        plus, minus = self._squares(m, a, b)
        difference = chain(m, *(
            (SUB_MASKED, plus[n], minus[n], Const(1)) for n in range(len(self.product))
        ), carry=1)
        return pipeline(m, difference.as_signed(), 1, "o_product")

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
