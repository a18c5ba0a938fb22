"""Operators without weights as C: a struct of numbers, and a call of a function in `files`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weft.models.c_code.tensors import array, struct
from weft.models.ir import Tensor
from weft.models.kernels.fixed_point import INT32, high_mul, wrap32
from weft.models.program import Step

__all__ = ["OPERATORS", "OperatorCall", "operator_problem"]

_MAX_SOFTMAX = 4095  # values of a row: sums of exponentials must fit 31 bits


@dataclass(frozen=True)
class OperatorCall:
    """An operator as C.

    Attributes
    ----------
    header : str
        File with the function.
    call : str
        The call, with ``{a}`` and ``{b}`` for the inputs and ``{y}`` for the output.
    text : str
        Definitions.
    constant_bytes : int
        Bytes of arrays in the definitions.
    """

    header: str
    call: str
    text: str = ""
    constant_bytes: int = 0


def operator_problem(step: Step, tensors: tuple[Tensor, ...]) -> str:
    """Return why there is no C code for an operator of the host; empty if there is."""
    kernel, given = step.work.kernel, step.work.attributes
    if kernel not in OPERATORS:
        return f"no C kernel for it; those of {', '.join(sorted(_NAMES))} exist"
    shapes = [tensors[number].shape for number in step.inputs]
    if kernel in ("tflite.add", "litert.add") and len(set(shapes)) > 1:
        return f"operands must have one shape, not {shapes[0]} and {shapes[1]}"
    if kernel in ("tflite.softmax", "litert.softmax") and not 1 <= shapes[0][-1] <= _MAX_SOFTMAX:
        return f"a row must have 1..{_MAX_SOFTMAX} values, not {shapes[0][-1]}"
    if kernel in ("tflite.mean", "litert.sum"):
        axes = given["axes"]
        if not axes or axes != tuple(range(axes[0], axes[-1] + 1)):
            return f"the axes must be adjacent, not {axes}"
    if kernel == "pad":
        if len(step.inputs) > 1:
            return "the padding value must be a constant"
        if len(shapes[0]) > 4:
            return f"x must have at most 4 axes, not {len(shapes[0])}"
    return ""


def _add(number, given, x, y):
    pairs = [
        value for index in (0, 1) for value in (
            given["zeros"][index], given["multipliers"][index], given["shifts"][index]
        )
    ]
    text = struct(
        "net_sum", f"sum{number}", math.prod(y), pairs, given["left_shift"], given["multiplier"],
        given["shift"], given["zero"], given["low"], given["high"],
    )
    return OperatorCall("net_add.h", f"net_add(&sum{number}, {{a}}, {{b}}, {{y}})", text)


def _pool(number, given, x, y, *, is_average):
    text = struct(
        "net_pool", f"pool{number}", x, given["kernel_size"], given["stride"], given["padding"],
        given["output"], given["low"], given["high"],
    )
    call = f"net_pool_map(&pool{number}, {{a}}, {{y}}, {int(is_average)})"
    return OperatorCall("net_pool.h", call, text)


def _lite_add(number, given, x, y):
    pairs = np.transpose([given["zeros"], given["multipliers"]])
    text = struct(
        "net_products", f"sum{number}", math.prod(y), pairs, given["shift"], given["zero"],
        given["low"], given["high"],
    )
    return OperatorCall("net_lite.h", f"net_lite_add(&sum{number}, {{a}}, {{b}}, {{y}})", text)


def _parts(given, x):
    """Values before, along and after the axes of a reduction."""
    first, last = given["axes"][0], given["axes"][-1]
    sizes = x[:first], x[first : last + 1], x[last + 1 :]
    return [math.prod(size) for size in sizes]


def _mean(number, given, x, y):
    outer, count, inner = _parts(given, x)
    # The scale is divided by the count, as `weft.models.kernels.tflite` does.
    places = min(count.bit_length() - 1, 32, 31 + given["shift"])
    multiplier = (given["multiplier"] << places) // count
    text = struct(
        "net_reduction", f"mean{number}", outer, count, inner, given["zeros"], multiplier,
        given["shift"] - places,
    )
    return OperatorCall("net_mean.h", f"net_mean(&mean{number}, {{a}}, {{y}})", text)


def _lite_mean(number, given, x, y):
    outer, count, inner = _parts(given, x)
    scale, (zero, y_zero) = np.float32(given["scale"]), given["zeros"]
    offset = np.float32(y_zero) - np.float32(count * zero) * scale
    text = struct("net_total", f"mean{number}", outer, count, inner, _float(scale), _float(offset))
    return OperatorCall("net_lite.h", f"net_lite_mean(&mean{number}, {{a}}, {{y}})", text)


def _float(value):
    """A float32 as C text."""
    return f"{float(value).hex()}f"


def _lite_softmax(number, given, x, y):
    size = x[-1]
    scale = _float(np.float32(given["scale"]))
    call = (
        f"net_lite_softmax(exponentials{number}, {scale}, {math.prod(x) // size}, {size}, "
        "{a}, {y})"
    )
    values = ", ".join(_float(value) for value in given["exponentials"])
    text = struct("float", f"exponentials{number}[]", values)
    return OperatorCall("net_lite.h", call, text, 1024)


def _softmax(number, given, x, y):
    steps = np.arange(-255, 1)
    scaled = high_mul(wrap32(steps << given["left_shift"]), given["multiplier"])
    values = np.where(steps >= given["least"], INT32.exp_on_negative(scaled, 5), 0)
    size = x[-1]
    call = (
        f"net_softmax(exponentials{number}, {math.prod(x) // size}, {size}, {{a}}, {{y}})"
    )
    text = array("int32_t", f"exponentials{number}", values)
    return OperatorCall("net_softmax.h", call, text, 1024)


def _pad(number, given, x, y):
    more = 4 - len(x)
    before = [0] * more + [pair[0] for pair in given["padding"]]
    ones = [1] * more
    text = struct(
        "net_padding", f"padding{number}",
        *("{" + ", ".join(map(str, axes)) + "}" for axes in ([*ones, *x], before, [*ones, *y])),
        int(given["value"]),
    )
    return OperatorCall("net_move.h", f"net_pad(&padding{number}, {{a}}, {{y}})", text)


def _table(number, given, x, y):
    text = array("int8_t", f"table{number}", given["table"].view(np.int8))
    call = f"net_look_up(table{number}, {math.prod(x)}, {{a}}, {{y}})"
    return OperatorCall("net_move.h", call, text, 256)


def _average(number, given, x, y):
    return _pool(number, given, x, y, is_average=True)


def _largest(number, given, x, y):
    return _pool(number, given, x, y, is_average=False)


def _copy(number, given, x, y):
    return OperatorCall("net_move.h", f"net_copy({math.prod(x)}, {{a}}, {{y}})")


_NAMES = (
    "ADD", "AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN", "PAD", "RESHAPE", "SOFTMAX", "table operators",
)
# By kernel of `weft.models.kernels`: function(number, attributes, shape of x, shape of y).
OPERATORS: dict[str, Callable[..., OperatorCall]] = {
    "pad": _pad, "reshape": _copy, "table": _table, "tflite.add": _add,
    "tflite.average_pool": _average, "tflite.max_pool": _largest, "tflite.mean": _mean,
    "tflite.softmax": _softmax, "litert.add": _lite_add, "litert.softmax": _lite_softmax,
    "litert.sum": _lite_mean,
}
