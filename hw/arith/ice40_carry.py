"""Hand-made carry chains of the iCE40: cells that select and add in one LUT a bit."""

from amaranth.hdl import Cat, Const, Instance, Signal

__all__ = ["ADD_MASKED", "ADD_MASKED_INVERTED", "LOAD_OR_ADD", "chain"]

# The carry out of a cell depends on I1, I2 and the carry in. Its LUT also sees I0, the select.
LOAD_OR_ADD = 0xE1B4          # select ? b : a + b
ADD_MASKED = 0xC66C           # select ? a + b : a
ADD_MASKED_INVERTED = 0x3993  # ~(select ? a + b : a)


def chain(m, init, select, a, b):
    """The function ``init`` of ``select``, ``a`` and ``b``; ``a`` and ``b`` are equally wide."""
    bits = []
    carry = Const(0, 1)
    for x, y in zip(a, b, strict=True):
        bits.append(bit := Signal(name="chain"))
        m.submodules += Instance(
            "SB_LUT4", p_LUT_INIT=Const(init, 16),
            i_I0=select, i_I1=x, i_I2=y, i_I3=carry, o_O=bit,
        )
        if len(bits) < len(a):
            next_carry = Signal(name="carry")
            m.submodules += Instance("SB_CARRY", i_I0=x, i_I1=y, i_CI=carry, o_CO=next_carry)
            carry = next_carry
    return Cat(bits)
