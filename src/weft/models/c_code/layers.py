"""Layers with weights as C: each product with its weights, columns and window."""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from weft.commands import JobFlag, Region
from weft.config import Config
from weft.descriptors import write_unit
from weft.geometry import memories
from weft.host.packing import pack_entries
from weft.models.c_code.tensors import array, numbers, struct
from weft.models.ir import Gemm, Tensor, Window
from weft.models.lowering import MatrixRows, PairRows
from weft.models.products import host_product
from weft.models.program import Step
from weft.models.windows import WindowRows
from weft.models.work import CoreWork

__all__ = ["CLayer", "layer_of", "layer_problem"]

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
