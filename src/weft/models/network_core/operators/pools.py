"""Maxima of maps, and MAX_POOL_2D.

``max(a, b) = a + clamp(b - a, 0, 255)``. The limited difference is stored less 128, as int8.
"""

from weft.models.ir import Window
from weft.models.network_core.operators.builder import OperatorBuilder

__all__ = ["LOWERINGS", "corrected", "maximum"]

_LEAST = -128  # never a maximum of other values


def maximum(
    builder: OperatorBuilder, x: int, other: int, window: Window | None = None, **result
) -> int:
    """Return a map with the larger ones of two maps, or of pixels of x and a map.

    ``window`` has one tap; the taps outside x are less than all others. ``result`` are limits, and
    ``y``.
    """
    # What the other map is larger than x, and -128 where it is not.
    more = builder.sum(x, other, window, x_zero=_LEAST, zero=_LEAST)
    return corrected(builder, x, more, window, **result)


def corrected(
    builder: OperatorBuilder, x: int, difference: int, window: Window | None = None, *,
    least: bool = False, **result
) -> int:
    """Return x plus what another map is larger: ``x + difference + 128``.

    With ``least``, plus what it is less: ``x + difference - 127``. The layer computes ``-1 - x``,
    whose negative is added: so the table is that of a difference.
    """
    zero = -128 if least else 127
    return builder.sum(
        x, difference, window, weight=-1, bias=-1, x_zero=_LEAST, zero=zero, **result
    )


def _max_pool(builder):
    """The rows of the windows first, then their columns: a maximum of two taps after the other."""
    given, x = builder.node.attributes, builder.read()
    low, high = (builder.zero(given[name], builder.tensor(0)) for name in ("low", "high"))
    for axis in (1, 0):
        limits = {} if axis else {"low": low, "high": high}
        x = _maximum_along(
            builder, x, axis, given["kernel_size"][axis], given["stride"][axis],
            given["padding"][axis], given["output"][axis], limits,
        )
    return x


def _maximum_along(builder, x, axis, kernel, stride, before, output, limits):
    """Return the maxima of windows along an axis of a map."""
    size = builder.size(x)

    def window(first, taps):
        """The window of ``taps`` taps from tap ``first`` on."""
        values = {
            "kernel": (1, taps), "stride": (1, stride if output > 1 else 1),
            "output": (size[1 - axis], output), "start": (0, before - first),
        }
        if axis == 0:
            values = {name: value[::-1] for name, value in values.items()}
        (top, left) = values["start"]
        return Window(
            values["kernel"], values["stride"], (1, 1), (top, 0, left, 0), size[:2],
            values["output"],
        )

    if kernel == 1:
        return builder.copy(x, window(0, 1), x_zero=_LEAST, **limits)
    # The second tap less the first one needs no table.
    last = kernel == 2
    more = builder.taps(x, window(0, 2), [-1, 1], x_zero=_LEAST, zero=_LEAST)
    y = corrected(builder, x, more, window(0, 1), **(limits if last else {}))
    for tap in range(2, kernel):
        last = tap == kernel - 1
        y = maximum(builder, x, y, window(tap, 1), **(limits if last else {}))
    return y


LOWERINGS = {"tflite.max_pool": _max_pool}
