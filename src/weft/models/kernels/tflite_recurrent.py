"""SVDF, an operator of TFLite with a state, which lasts from run to run.

Source: TFLite Micro, ``svdf_common.cc``.
"""

import numpy as np

from weft.models.kernels.fixed_point import clamp, multiply, wrap32

__all__ = ["KERNELS"]


def _svdf(inputs, attributes, state):
    """The state and the filter in time of a singular value decomposition filter.

    ::

        state = state[:, :, 1:] with clip(sums * scale_0) + state_zero at the end
        total = bias + sum of time * (state - state_zero) over time and rank
        y = clamp(total * scale_1 + zero, low, high)

    The input has the sums of the features: int32 [batch, filters]. ``time`` : int8 or int16
    [filters, memory], the type of the state; ``state_zero`` : its zero point, which may wrap the
    clipped sum; ``bias`` : int32 [filters / rank] or None; ``rank``; ``multipliers``, ``shifts`` :
    pairs, of both scales; ``zero``, ``low``, ``high`` of y.
    """
    [sums] = inputs
    kind, zero = attributes["time"].dtype, attributes["state_zero"]
    time, rank, limits = attributes["time"].astype(np.int64), attributes["rank"], np.iinfo(kind)
    (m, n), (s, t) = attributes["multipliers"], attributes["shifts"]
    batch, filters = sums.shape
    old = state.get("svdf")
    if old is None:
        old = np.zeros((batch, *time.shape), np.int64)
    newest = np.clip(multiply(sums, m, s), limits.min, limits.max) + zero
    newest = newest.astype(kind).astype(np.int64) - zero  # it wraps
    new = state["svdf"] = np.concatenate([old[:, :, 1:], newest[:, :, None]], 2)
    total = wrap32((new * time).sum(2)).reshape(batch, filters // rank, rank).sum(2)
    if attributes["bias"] is not None:
        total = total + attributes["bias"]
    y = multiply(wrap32(total), n, t) + attributes["zero"]
    return [clamp(y, attributes["low"], attributes["high"], np.int8)]


@np.errstate(all="ignore")  # infinity and NaN are results
def _float_svdf(inputs, attributes, state):
    """The same of float32, without scales; ``low``, ``high`` : numbers, or None for no limit."""
    [features], time, rank = inputs, attributes["time"], attributes["rank"]
    batch, filters = features.shape
    old = state.get("svdf")
    if old is None:
        old = np.zeros((batch, *time.shape), np.float32)
    new = state["svdf"] = np.concatenate([old[:, :, 1:], features[:, :, None]], 2)
    y = (new * time).sum(2).reshape(batch, filters // rank, rank).sum(2)
    if attributes["bias"] is not None:
        y = y + attributes["bias"]
    if attributes["low"] is not None or attributes["high"] is not None:
        y = y.clip(attributes["low"], attributes["high"])
    return [y.astype(np.float32)]


KERNELS = {"litert.svdf": _float_svdf, "tflite.svdf": _svdf}
