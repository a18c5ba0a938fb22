"""Makes the work of a Gemm: a `CoreWork` with packed operands and flags, or a `HostProduct`.

A work has a ``finish``: the part that the host computes after the sums. ``rows`` is the lowering of
the operator: how its tensors become rows of A and columns of B.
"""

import numpy as np
from ml_dtypes import bfloat16

from weft.commands import JobFlag, Region
from weft.config import Config
from weft.geometry import memories
from weft.host.packing import LIMITS, pack, pack_entries
from weft.host.product_stream import Packed
from weft.models.arithmetic import FloatFinish, IntegerFinish, Rescale, host_operand, shifted_zero
from weft.models.ir import Gemm, Tensor
from weft.models.lowering import MatrixRows, PairRows, WindowRows
from weft.models.placement import Decision
from weft.models.work import CoreWork, HostProduct

__all__ = ["core_flags", "core_work", "host_product"]

Rows = MatrixRows | PairRows | WindowRows
_LIMITS = {"none": (None, None), "relu": (0.0, None), "relu6": (0.0, 6.0)}


def core_flags(gemm: Gemm, decision: Decision, config: Config, *, table: bool = False) -> JobFlag:
    """Return the flags of the jobs of a product on the core."""
    if config.dtype == "int8":
        flags = JobFlag.REQUANTIZE if decision.requantizes else JobFlag(0)
        return flags | JobFlag.TABLE if table else flags
    flags = JobFlag(0)
    if gemm.bias is not None:
        # Without a C buffer the host adds the bias. It then clamps, too: a clamp follows the bias.
        if not config.c_words:
            return flags
        flags |= JobFlag.PRELOAD | JobFlag.BROADCAST
    if gemm.activation != "none" and config.activation == "clamp":
        flags |= JobFlag.CLAMP
    return flags


def core_work(
    gemm: Gemm, tensors: tuple[Tensor, ...], rows: Rows, config: Config, mode: str,
    decision: Decision, table: np.ndarray | None,
) -> CoreWork:
    """Return the work of a product on the core; its weights are streamed with it.

    Raises ValueError if a scale is not valid.
    """
    x = tensors[gemm.x]
    flags = core_flags(gemm, decision, config, table=table is not None)
    common = dict(
        x=gemm.x, b=gemm.b, x_zero=gemm.x_zero, rows=rows, x_shape=x.shape, config=config,
        flags=flags, table=table,
    )
    if config.dtype == "bf16":
        return CoreWork(
            **common, results=np.dtype(np.float32),
            packed=_float_operands(gemm, rows, config, flags), finish=_float_finish(gemm, flags),
        )
    columns, finish = _integer(gemm, tensors, rows, mode, split=True)
    entries = None
    results = np.dtype(np.int32)
    if decision.requantizes:
        results = gemm.requantization.dtype if table is None else table.dtype
        if columns is not None:
            # The constant is the bias with the terms of the zero points.
            entries = finish.rescale.entries(rows, finish.constant(), finish.w_zero)
    return CoreWork(
        **common, results=results, packed=_packed(columns, entries, config), finish=finish,
        # A has the high bytes of an int16 x, and then its low bytes: twice as many rows.
        copies=2 if x.dtype == np.int16 else 1,
    )


def host_product(
    gemm: Gemm, tensors: tuple[Tensor, ...], rows: Rows, mode: str,
    kind: type[HostProduct] = HostProduct,
) -> HostProduct:
    """Return the work of a product that the host finishes, or computes: of a ``kind``.

    Raises ValueError if a scale is not valid.
    """
    if tensors[gemm.x].dtype == np.float32:
        weights = gemm.weights
        if weights is not None:
            groups, _, columns = weights.shape
            weights = rows.weights(weights, np.zeros(groups * columns))  # no zero points
        finish = _float_finish(gemm, JobFlag(0))
    else:
        columns, finish = _integer(gemm, tensors, rows, mode, split=False)
        weights = None if columns is None else columns.swapaxes(1, 2)
    return kind(
        x=gemm.x, b=gemm.b, x_zero=gemm.x_zero, rows=rows, weights=weights, finish=finish,
    )


def _integer(gemm, tensors, rows, mode, split):
    """Return the columns of B, [count, n, k] of int8, and the finish of an integer product.

    ``split``: the products of int16 values are computed from their two bytes.
    """
    x = tensors[gemm.x]
    dtype = tensors[gemm.b].dtype if gemm.weights is None else gemm.weights.dtype
    channels = rows.n if gemm.weights is None else gemm.weights.shape[0] * gemm.weights.shape[2]
    zero = np.broadcast_to(shifted_zero(gemm.w_zero, dtype), channels)
    bias = np.zeros(channels, np.int64) if gemm.bias is None else gemm.bias.astype(np.int64)
    columns = None
    if gemm.weights is not None:
        weights = rows.weights(host_operand(np.ascontiguousarray(gemm.weights)), zero)
        columns = np.ascontiguousarray(weights.swapaxes(1, 2))
    requantization, rescale = gemm.requantization, None
    result = np.dtype(np.int64 if x.dtype == np.int16 else np.int32)
    if requantization is not None:
        rescale = Rescale.of(requantization, channels, mode)
        result = np.dtype(requantization.dtype)
    return columns, IntegerFinish(
        k=rows.k, x_zero=int(shifted_zero(gemm.x_zero, x.dtype, split=split)),
        w_zero=rows.by_columns(zero).astype(np.int64), bias=rows.by_columns(bias),
        column_sums=None if columns is None else columns.sum(-1, dtype=np.int64),
        rescale=rescale, dtype=result,
    )


def _packed(columns, entries, config):
    """Return weights and parameters of an int8 product, packed."""
    geometry = memories(config)
    b = parameters = b""
    if columns is not None:
        b = b"".join(pack(lines, geometry[Region.B]) for lines in columns)
    if entries is not None:
        operand = geometry[Region.PARAMETERS]
        parameters = b"".join(pack_entries(line, operand, config.cols) for line in entries)
    return Packed(b, parameters, products=1 if columns is None else len(columns))


def _float_operands(gemm, rows, config, flags):
    """Return weights, limits and bias of a bf16 product, packed."""
    geometry = memories(config)
    b = parameters = start_values = b""
    # Products of two activations have equal parameters, which the stream repeats; B follows later.
    count = 1 if isinstance(rows, PairRows) else rows.count
    if gemm.weights is not None:
        groups, _, columns = gemm.weights.shape
        zero = np.zeros(groups * columns)  # no zero points
        with np.errstate(over="ignore", invalid="ignore"):
            b_columns = rows.weights(gemm.weights, zero).astype(bfloat16).swapaxes(1, 2)
        b = b"".join(pack(lines, geometry[Region.B]) for lines in b_columns)
    if JobFlag.CLAMP in flags:
        low, high = _LIMITS[gemm.activation]
        limits = np.zeros(rows.n, LIMITS)
        limits["low"], limits["high"] = low, np.inf if high is None else high
        parameters = count * pack_entries(limits, geometry[Region.PARAMETERS], config.cols)
    if JobFlag.PRELOAD in flags:
        bias = rows.by_columns(gemm.bias.astype(np.float32))
        start_values = b"".join(pack(line[:, None], geometry[Region.C]) for line in bias)
    return Packed(b, parameters, start_values, count)


def _float_finish(gemm, flags):
    """Return the part of a float32 product that the host computes."""
    bias = None if JobFlag.PRELOAD in flags else gemm.bias
    low, high = (None, None) if JobFlag.CLAMP in flags else _LIMITS[gemm.activation]
    return FloatFinish(None if bias is None else bias.astype(np.float32), low, high)
