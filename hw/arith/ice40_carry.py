"""Carry chains of the iCE40 by hand: cells that choose and add in one LUT a bit."""

from amaranth.hdl import Cat, Const, Instance, Signal

__all__ = ["ONLY", "PART", "PART_NOT", "chain"]

# A cell carries on what I1 + I2 and the carry give, whatever its LUT makes of these and of I0.
#                  with I0  else
ONLY = 0xE1B4      # b      a + b
PART = 0xC66C      # a + b  a
PART_NOT = 0x3993  # these, inverted


def chain(m, init, choice, a, b):
    """What ``init`` says of ``choice``, ``a`` and ``b``, two values of equally many bits."""
    bits = []
    carry = Const(0, 1)
    for x, y in zip(a, b, strict=True):
        bits.append(bit := Signal(name="chain"))
        m.submodules += Instance(
            "SB_LUT4", p_LUT_INIT=Const(init, 16),
            i_I0=choice, i_I1=x, i_I2=y, i_I3=carry, o_O=bit,
        )
        if len(bits) < len(a):
            after = Signal(name="carry")
            m.submodules += Instance("SB_CARRY", i_I0=x, i_I1=y, i_CI=carry, o_CO=after)
            carry = after
    return Cat(bits)
