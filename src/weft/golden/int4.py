"""Weights of int4: codes of 4 bits, with a scale for neighbouring inputs of an output."""

import numpy as np

__all__ = [
    "CODES", "GROUP", "MAX_SCALE", "from_nibbles", "nearest", "nibbles", "scales_of", "unpack",
]

GROUP = 16  # inputs of an output that share a scale, in a language model
CODES = -8, 7  # the range of a code
MAX_SCALE = 15  # 8 * 15 is below 128
_ROWS = 512  # at a time: the first ones refuse weights of int8


def unpack(codes, scales, group: int = GROUP) -> np.ndarray:
    """``weight = code * scale``, int8: each weight of int4 is exact.

    Parameters
    ----------
    codes : int8 [outputs, inputs]
        -8 to 7.
    scales : uint8 [outputs, ceil(inputs / group)]
        0 to 15: scale g belongs to the inputs ``group * g`` to ``group * g + group - 1``.
    """
    inputs = codes.shape[1]
    return (codes * scales.astype(np.int8).repeat(group, 1)[:, :inputs]).astype(np.int8)


def scales_of(weights, group: int = GROUP) -> np.ndarray | None:
    """The smallest scales that give these weights, uint8 [outputs, ceil(inputs / group)].

    None if the weights, int8 [outputs, inputs], are not of int4: a group has no scale of 1 to 15
    that divides its weights, with quotients of -8 to 7.
    """
    outputs, inputs = weights.shape
    found = np.zeros((outputs, -(-inputs // group)), np.uint8)
    for first in range(0, outputs, _ROWS):
        rows = weights[first : first + _ROWS]
        groups = np.pad(rows, ((0, 0), (0, -inputs % group))).reshape(len(rows), -1, group)
        part = found[first : first + _ROWS]
        for scale in range(1, MAX_SCALE + 1):
            codes = groups // scale
            fits = (codes * scale == groups) & (codes >= CODES[0]) & (codes <= CODES[1])
            part[(part == 0) & fits.all(-1)] = scale
        if not part.all():
            return None
    return found


def nearest(values, group: int = GROUP) -> np.ndarray:
    """The weights of int4 next to values, int8 of the shape of ``values``, [outputs, inputs].

    The scale of each group has the smallest sum of squared errors.
    """
    outputs, inputs = values.shape
    groups = np.pad(values, ((0, 0), (0, -inputs % group))).reshape(outputs, -1, group)
    codes, scales = np.zeros(groups.shape, np.int8), np.ones(groups.shape[:2], np.uint8)
    least = np.full(scales.shape, np.inf)
    for scale in range(1, MAX_SCALE + 1):
        found = np.clip(np.rint(groups / scale), *CODES)
        error = ((found * scale - groups) ** 2).sum(-1)
        better = error < least
        least[better], scales[better], codes[better] = error[better], scale, found[better]
    return unpack(codes.reshape(outputs, -1)[:, :inputs], scales, group)


def nibbles(values) -> np.ndarray:
    """Pairs of the last axis as bytes, uint8: the lower 4 bits of the first one are lower."""
    values = values.astype(np.int64) & 15
    return (values[..., 0::2] | values[..., 1::2] << 4).astype(np.uint8)


def from_nibbles(packed) -> np.ndarray:
    """Both nibbles of each byte of the last axis, the lower one first: 0 to 15, uint8."""
    packed = packed.view(np.uint8)
    return np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)
