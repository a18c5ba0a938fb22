"""Cells of the ECP5: the settings of its block RAM, and carry chains made by hand."""

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = [
    "ADD", "ADDRESS_BITS", "ADD_MASKED", "ADD_OR_LOAD", "ADD_PRODUCTS", "AND", "Accumulator",
    "PORT_BITS", "SUB_MASKED", "SUB_PRODUCTS", "chain", "dp16kd",
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


ADDRESS_BITS = 14  # of a port; the address counts bits
PORT_BITS = 18  # data bits of a port
ALWAYS = Const(1)
_ROW_WORDS, _ROW_STEP = 16, 20  # words of 18 bits in an INITVAL, and bits from one to the next


def dp16kd(ports, *, width_a, width_b, read_en=ALWAYS, table=()):
    """A DP16KD with output registers.

    Parameters
    ----------
    ports : dict
        Addresses, data and write enables of its ports A and B, by the name of the Instance.
    width_a, width_b : int
        Width of the words of each port.
    read_en : Value, optional
        Clock enable of port B and of all output registers; 1 if absent.
    table : sequence of int
        The first words of 18 bits; the others start at 0.

    Source: Lattice FPGA-TN-02204, ECP5 and ECP5-5G Memory Usage Guide: DP16KD. The order of the
    bits in INITVAL: as Yosys writes them.
    """
    ports = {**ports}
    for port, width, enable in (("A", width_a, ALWAYS), ("B", width_b, read_en)):
        ports |= {
            f"i_CLK{port}": ClockSignal(),
            f"i_CE{port}": enable,
            f"i_OCE{port}": read_en,
            f"i_RST{port}": Const(0),
            **{f"i_CS{port}{n}": Const(0) for n in range(3)},
            f"p_DATA_WIDTH_{port}": width,
            f"p_REGMODE_{port}": "OUTREG",
            f"p_CSDECODE_{port}": "0b000",
        }
    for row, first in enumerate(range(0, len(table), _ROW_WORDS)):
        words = table[first : first + _ROW_WORDS]
        value = sum(word << _ROW_STEP * n for n, word in enumerate(words))
        ports[f"p_INITVAL_{row:02X}"] = Const(value, _ROW_WORDS * _ROW_STEP)
    return Instance("DP16KD", p_RESETMODE="SYNC", p_GSR="DISABLED", **ports)
