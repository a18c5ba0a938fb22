"""Operators without weights as C: a struct of numbers, and a call of a function in `files`."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weft.commands import JobFlag, Region
from weft.config import Config
from weft.descriptors import write_unit
from weft.geometry import memories
from weft.host.packing import pack_entries
from weft.models.c_code.tensors import array, numbers, struct
from weft.models.ir import Gemm, Tensor, Window
from weft.models.kernels.fixed_point import INT32, high_mul, wrap32
from weft.models.lowering import MatrixRows, PairRows, WindowRows
from weft.models.products import host_product
from weft.models.program import Step
from weft.models.work import CoreWork

__all__ = ["OPERATORS", "CLayer", "OperatorCall", "layer_of", "layer_problem", "operator_problem"]


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


_BLOCK_BYTES = 8192  # of A, and of the results with bus dma


@dataclass(frozen=True)
class CLayer:
    """A layer as C.

    Attributes
    ----------
    text : str
        Definitions; the last one is the ``net_layer``.
    a_bytes, result_bytes : int
        Memory for a block of A, and with bus dma for its results.
    buffer_bytes : int
        Memory for packed parameters and tables, with bus dma.
    constant_bytes : int
        Weights, columns and tables.
    """

    text: str
    a_bytes: int
    result_bytes: int
    buffer_bytes: int
    constant_bytes: int


def layer_problem(step: Step, gemm: Gemm, config: Config) -> str:
    """Return why there is no C code for a product; empty if there is."""
    work = step.work
    if not isinstance(work, CoreWork) or JobFlag.REQUANTIZE not in work.flags:
        change = f" ({step.placement.field} changes this)" if step.placement.field else ""
        return f"{step.placement.reason or 'the results are sums'}{change}"
    if isinstance(work.rows, PairRows):
        return "both operands are activations"
    if isinstance(work.rows, MatrixRows) and work.rows.transposed:
        return "x is transposed"
    if isinstance(work.rows, WindowRows) and gemm.layout != "NHWC":
        return f"the layout of x must be NHWC, not {gemm.layout}"
    limit = config.data_type.max_k
    if limit and gemm.weights.shape[1] > limit:
        return f"K must be at most {limit}, not {gemm.weights.shape[1]}"
    return ""


def layer_of(
    number: int, step: Step, gemm: Gemm, tensors: tuple[Tensor, ...], config: Config, mode: str
) -> CLayer:
    """Return the layer ``number`` for a product without a `layer_problem`.

    Groups of few columns are computed together, with block-diagonal weights, as many as fill the
    columns of the array.
    """
    groups, k, n = gemm.weights.shape
    together = max(1, min(groups, config.cols // n))
    m = math.prod(tensors[gemm.outputs[0]].shape) // (groups * n)
    copies = gemm.window is not None and (groups > 1 or step.work.rows.method != "pointwise")
    stride = -(-k * together // 4) * 4 if copies else k
    block = _block(m, max(stride, groups * n), config.rows)
    texts, parts, constant, entries = [], [], 0, 0
    for index, first in enumerate(range(0, groups, together)):
        part = _part_of(gemm, first, min(together, groups - first))
        b, columns = _operands(part, tensors, mode)
        whole = np.zeros((len(b), stride), np.int8)
        whole[:, : b.shape[1]] = b
        name = f"{number}_{index}"
        texts.append(array("int8_t", f"b{name}", whole))
        texts.append(struct("weft_column", f"columns{name}[]", *_entries(columns)))
        channels = part.weights.shape[1] // _area(gemm.window)
        inputs = channels * part.weights.shape[0]
        parts.append(
            f"{{{b.shape[1]}, {len(b)}, {first * channels}, {inputs}, {first * n}, b{name},"
            f" columns{name}}}"
        )
        constant += whole.nbytes + columns.nbytes
        packed = pack_entries(columns, memories(config)[Region.PARAMETERS], config.cols)
        entries = max(entries, len(packed))
    table = step.work.table
    if table is not None:
        texts.append(array("uint8_t", f"table{number}", table.view(np.uint8)))
        constant, entries = constant + 256, max(entries, 256)
    if copies:
        texts.append(_window(number, gemm))
    texts.append(struct("net_part", f"parts{number}[]", *parts))
    texts.append(struct(
        "net_layer", f"layer{number}", m, groups * n, block, stride,
        f"&window{number}" if copies else "NULL", f"parts{number}", len(parts),
        "NULL" if table is None else f"table{number}",
    ))
    unit = write_unit(config, JobFlag.REQUANTIZE)
    row = -(-min(together, groups) * n // unit) * unit
    return CLayer(
        "\n".join(texts), a_bytes=block * stride if copies else 0,
        result_bytes=block * row + unit, buffer_bytes=entries, constant_bytes=constant,
    )


def _block(m, row_bytes, rows):
    """Rows of A that fit `_BLOCK_BYTES`: whole panels of the core, if one fits."""
    block = max(1, _BLOCK_BYTES // row_bytes)
    return min(m, block // rows * rows or block)


def _area(window):
    return 1 if window is None else math.prod(window.kernel)


def _part_of(gemm, first, count):
    """Return the product of some groups only."""
    n = gemm.weights.shape[2]
    columns = slice(first * n, (first + count) * n)

    def part(values):
        return values if values is None or len(values) == 1 else values[columns]

    given = gemm.requantization
    return dataclasses.replace(
        gemm, weights=gemm.weights[first : first + count], w_zero=part(gemm.w_zero),
        bias=None if gemm.bias is None else gemm.bias[columns],
        requantization=dataclasses.replace(given, w_scale=part(np.asarray(given.w_scale))),
    )


def _operands(gemm, tensors, mode):
    """Return the columns of B, int8 [n, k], and their `weft.host.packing.ENTRY`."""
    groups, k, n = gemm.weights.shape
    if gemm.window is None:
        rows = MatrixRows(k, n)
    else:
        channels = k // _area(gemm.window)
        rows = WindowRows(gemm.window, gemm.layout, groups, channels, n, together=groups)
    work = host_product(gemm, tensors, rows, mode)
    finish = work.finish
    entries = finish.rescale.entries(rows, finish.constant(), finish.w_zero)
    return np.ascontiguousarray(work.weights[0].T), entries[0]


def _entries(columns):
    fields = "bias", "multiplier", "shift", "b_zero", "zero", "low", "high"
    return [
        "{" + ", ".join(
            f"{entry[name]}u" if name == "multiplier" else numbers(entry[name]) for name in fields
        ) + "}"
        for entry in columns
    ]


def _window(number, gemm):
    window: Window = gemm.window
    channels = gemm.weights.shape[0] * gemm.weights.shape[1] // _area(window)
    return struct(
        "net_window", f"window{number}", window.input, channels, window.kernel, window.stride,
        window.dilation, window.padding[0], window.padding[2], window.spread, window.output,
        gemm.x_zero,
    )
