"""SVDF, an operator of TFLite with a state, which lasts from run to run.

Source: TFLite Micro, ``svdf_common.cc``.
"""

import numpy as np

from weft.models.kernels.fixed_point import clamp, multiply, wrap32

__all__ = ["KERNELS"]


def _svdf(inputs, attributes, state):
    """The state and the filter in time of a singular value decomposition filter.

    ::

        state = state[:, :, 1:] with int16(sums * scale_0) at the end
        y = clamp((bias + sum of time * state over time and rank) * scale_1 + zero, low, high)

    The input has the sums of the features: int32 [batch, filters]. ``time`` : int16 [filters,
    memory]; ``bias`` : int32 [filters / rank] or None; ``rank``; ``multipliers``, ``shifts`` :
    pairs, of both scales; ``zero``, ``low``, ``high`` of y.
    """
    [sums] = inputs
    time, rank = attributes["time"].astype(np.int64), attributes["rank"]
    (m, n), (s, t) = attributes["multipliers"], attributes["shifts"]
    batch, filters = sums.shape
    old = state.get("svdf")
    if old is None:
        old = np.zeros((batch, *time.shape), np.int64)
    newest = np.clip(multiply(sums, m, s), -(1 << 15), (1 << 15) - 1)
    new = state["svdf"] = np.concatenate([old[:, :, 1:], newest[:, :, None]], 2)
    total = wrap32((new * time).sum(2)).reshape(batch, filters // rank, rank).sum(2)
    if attributes["bias"] is not None:
        total = total + attributes["bias"]
    y = multiply(wrap32(total), n, t) + attributes["zero"]
    return [clamp(y, attributes["low"], attributes["high"], np.int8)]


KERNELS = {"tflite.svdf": _svdf}
