"""The last stages of an int8 epilogue: zero point and limits."""

from amaranth.hdl import Mux

from weft.hw.delay import pipeline

__all__ = ["clamp"]

# The width to which a scaled sum saturates before the zero point is added.
_SATURATED_BITS = 11


def clamp(m, y, *, zero, low, high, name):
    """``clamp(y + zero, low, high)``, `weft.latencies.CLAMP` cycles later.

    ``y`` has 32 bits; the others have 9 bits. ``zero`` must be valid 2 cycles after ``y``, ``low``
    and ``high`` 3 cycles after ``y``.
    """
    # Beyond the bounds the exact value does not matter: it saturates to fewer bits.
    top = y[_SATURATED_BITS - 1 :]
    all_ones = pipeline(m, top.all(), 1, f"all_ones_{name}")
    fits = all_ones | ~pipeline(m, top.any(), 1, f"any_one_{name}")
    most = (1 << _SATURATED_BITS - 1) - 1
    y = pipeline(m, y, 1, f"y_{name}")
    y = Mux(fits, y[:_SATURATED_BITS].as_signed(), Mux(y[-1], -most - 1, most))
    y = pipeline(m, y, 1, f"saturated_{name}")
    y = pipeline(m, y + zero, 1, f"offset_{name}")
    is_low = pipeline(m, (y - low)[-1], 1, f"is_low_{name}")
    is_high = pipeline(m, (high - y)[-1], 1, f"is_high_{name}")
    y, low, high = (
        pipeline(m, value, 1, f"c_{part}_{name}")
        for part, value in (("y", y[:9]), ("low", low), ("high", high))
    )
    clamped = Mux(is_low, low, Mux(is_high, high, y.as_signed()))
    return pipeline(m, clamped, 1, f"clamped_{name}")
