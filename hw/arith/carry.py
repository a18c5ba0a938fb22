"""Carry chains of the ECP5 by hand: sums of expressions for which a tool would spend more LUTs."""

from amaranth.hdl import Cat, Const, Instance, Signal, Value

__all__ = ["ADD", "AND", "DRAIN", "KEEP", "PAIR", "PAIR_AWAY", "PART_AWAY", "chain"]

# A position is half a CCU2C: of inputs a, b, c, d it makes f(a, b, c, d), adds the carry, and
# carries that on where f is 1, else g(a, b), which is what its INIT says of c = d = 0. With d = 1,
# as where nothing else is said, f of three inputs and g are free of each other.
#                     f(c=1) f(c=0)          g
ADD = 0x660A        # a + b
KEEP = 0xA60A       # a + (b where not c)
PART_AWAY = 0x950A  # a + not (b & c)
PAIR = 0x7888       # (a & b) + (c & d)
PAIR_AWAY = 0x8788  # (a & b) + (not c & d)
DRAIN = 0x66F8      # a + b where d; c elsewhere, if b is 0
AND = 0x8800        # a & b
_CARRY = 0x000A     # carries a
_START = {0: (0x0000,), 1: (0x000F,)}


def chain(m, *positions, carry=0):
    """The sum of ``carry`` and ``positions``, ``(INIT, a, b, c, d)`` each, from the lowest on.

    It has a bit a position. The first half of the first CCU2C makes the carry that goes in: of a
    constant at CIN the router makes a whole one. The last carry is left open, for the same reason.
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
            given = dict(zip("ABCD", inputs, strict=False))
            ports |= {f"i_{pin}{n}": given.get(pin, Const(1)) for pin in "ABCD"}
            ports[f"o_S{n}"] = bit = Signal(name="chain")
            sums.append(bit)
        if link is not None:
            ports["i_CIN"] = link
        if len(sums) < len(halves):
            ports["o_COUT"] = link = Signal(name="carry")
        m.submodules += Instance("CCU2C", **ports)
    return Cat(sums[1 : 1 + len(positions)])
