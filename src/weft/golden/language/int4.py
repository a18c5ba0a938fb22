"""Weights of int4: codes of 4 bits, with a scale for 16 inputs of an output."""

import numpy as np

__all__ = ["CODES", "GROUP", "MAX_SCALE", "scales_of", "unpack"]

GROUP = 16  # inputs of an output that share a scale
CODES = -8, 7  # the range of a code
MAX_SCALE = 15  # 8 * 15 is below 128
_ROWS = 512  # at a time: the first ones refuse weights of int8


def unpack(codes, scales) -> np.ndarray:
    """``weight = code * scale``, int8: each weight of int4 is exact.

    Parameters
    ----------
    codes : int8 [outputs, inputs]
        -8 to 7.
    scales : uint8 [outputs, ceil(inputs / 16)]
        0 to 15: scale g belongs to the inputs 16 g to 16 g + 15.
    """
    inputs = codes.shape[1]
    return (codes * scales.astype(np.int8).repeat(GROUP, 1)[:, :inputs]).astype(np.int8)


def scales_of(weights) -> np.ndarray | None:
    """The smallest scales that give these weights, uint8 [outputs, ceil(inputs / 16)].

    None if the weights, int8 [outputs, inputs], are not of int4: a group has no scale of 1 to 15
    that divides its weights, with quotients of -8 to 7.
    """
    outputs, inputs = weights.shape
    found = np.zeros((outputs, -(-inputs // GROUP)), np.uint8)
    for first in range(0, outputs, _ROWS):
        rows = weights[first : first + _ROWS]
        groups = np.pad(rows, ((0, 0), (0, -inputs % GROUP))).reshape(len(rows), -1, GROUP)
        part = found[first : first + _ROWS]
        for scale in range(1, MAX_SCALE + 1):
            codes = groups // scale
            fits = (codes * scale == groups) & (codes >= CODES[0]) & (codes <= CODES[1])
            part[(part == 0) & fits.all(-1)] = scale
        if not part.all():
            return None
    return found
