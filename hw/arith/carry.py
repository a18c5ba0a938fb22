"""Hand-made carry chains of the ECP5, and the accumulator of its MAC cells."""

from amaranth.hdl import Cat, Const, Instance, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = [
    "ADD", "ADD_MASKED", "ADD_OR_LOAD", "ADD_PRODUCTS", "AND", "SUB_MASKED", "SUB_PRODUCTS",
    "Accumulator", "chain",
]


# A position is half a CCU2C, with inputs a, b, c and d. Its sum bit is f(a, b, c, d) plus the
# carry. Its carry out is the carry in if f is 1, otherwise g(a, b). INIT is the truth table of f;
# g is the part of it with c = d = 0. If d is 1, its default, f and g are independent.
#                        f(c=1) f(c=0)          g
ADD = 0x660A           # a + b
ADD_MASKED = 0xA60A    # a + (b & ~c)
SUB_MASKED = 0x950A    # a + ~(b & c)
ADD_PRODUCTS = 0x7888  # (a & b) + (c & d)
SUB_PRODUCTS = 0x8788  # (a & b) + (~c & d)
ADD_OR_LOAD = 0x66F8   # d ? a + b : c; needs b = 0 if d = 0
AND = 0x8800           # a & b
_CARRY = 0x000A        # the carry out is a
_START = {0: (0x0000,), 1: (0x000F,)}


def chain(m, *positions, carry=0):
    """The sum of ``carry`` and ``positions``, which are ``(INIT, a, b, c, d)``, lowest bit first.

    The sum has one bit for each position. The first half of the first CCU2C makes the carry in:
    for a constant at CIN the router would use a whole CCU2C. The last carry out is not connected,
    for the same reason.
    """
    start = (_CARRY, carry) if isinstance(carry, Value) else _START[carry]
    halves = [start, *positions]
    halves += [_START[0]] * (len(halves) % 2)
    sums = []
    link = None
    for low, high in zip(halves[::2], halves[1::2], strict=True):
        ports = {"p_INJECT1_0": "NO", "p_INJECT1_1": "NO"}
        for n, (init, *inputs) in enumerate((low, high)):
            ports[f"p_INIT{n}"] = Const(init, 16)
            pins = dict(zip("ABCD", inputs, strict=False))
            ports |= {f"i_{pin}{n}": pins.get(pin, Const(1)) for pin in "ABCD"}
            ports[f"o_S{n}"] = bit = Signal(name="chain")
            sums.append(bit)
        if link is not None:
            ports["i_CIN"] = link
        if len(sums) < len(halves):
            ports["o_COUT"] = link = Signal(name="carry")
        m.submodules += Instance("CCU2C", **ports)
    return Cat(sums[1 : 1 + len(positions)])


class Accumulator(wiring.Component):
    """``sum <= (0 if clear else sum) + term``; folded, ``sum <= above if shift else sum + term``.

    One LUT a bit: the carry chain of the addition takes the other inputs too. It adds in every
    cycle, so ``term`` must be 0 in a cycle without a step, and in every cycle of ``shift``.

    Parameters
    ----------
    term, acc : shape
    folded : bool
        Whether results leave through the sums.

    Attributes
    ----------
    term : In, ``term``
    clear : In, 1 bit; unless folded
        Start from 0.
    shift : In, 1 bit; if folded
        Load ``above``.
    above : In, ``acc``; if folded
        The sum of the PE above; valid with ``shift``.
    sum : Out, ``acc``
        One cycle after its term.
    """

    def __init__(self, *, term, acc, folded=False):
        self.folded = folded
        control = {"shift": In(1), "above": In(acc)} if folded else {"clear": In(1)}
        super().__init__({"term": In(term), **control, "sum": Out(acc)})

    def elaborate(self, platform):
        m = Module()
        if platform is not None:
            m.d.sync += self.sum.eq(chain(m, *self._positions()))
        elif self.folded:
            m.d.sync += self.sum.eq(Mux(self.shift, self.above, self.sum + self.term))
        else:
            m.d.sync += self.sum.eq(Mux(self.clear, 0, self.sum) + self.term)
        return m

    def _positions(self):
        """The positions of the carry chain, from the lowest bit on."""
        for n, bit in enumerate(self.sum):
            term = self.term[min(n, len(self.term) - 1)]
            if self.folded:
                yield ADD_OR_LOAD, bit, term, self.above[n], ~self.shift
            else:
                yield ADD_MASKED, term, bit, self.clear
