"""A weight of int4: the product of a code and a scale of 4 bits."""

from amaranth.hdl import Mux

__all__ = ["CODE_BITS", "weight_of"]

CODE_BITS = 4  # of a code, and of a scale


def weight_of(code, scale):
    """``code * scale``, 8 bits: of a signed code and an unsigned scale, each of `CODE_BITS`.

    The magnitude of the product is at most 120. It is four sums: a tool would take one of few
    multipliers for a product.
    """
    code = code.as_signed()
    a, b, c, d = (Mux(scale[bit], code << bit, 0) for bit in range(CODE_BITS))
    return ((a + b) + (c + d))[:8]
