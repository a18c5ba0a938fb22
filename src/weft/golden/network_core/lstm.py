"""A step in time of an LSTM of int8 with a cell of int16, bit by bit as TensorFlow Lite Micro."""

import numpy as np

from weft.golden.requantize import scaled
from weft.network_core.config import (
    LSTM_CELL_SHIFT,
    LSTM_LIMITS,
    LSTM_PARAMETERS,
    LSTM_SCALES,
)

__all__ = ["lstm_step"]

_GATES = 4
_NEW = 2  # the gate whose function is tanh; those of the others are sigmoids
_TABLE_LAST = 255
_FORGET, _UPDATE, _HIDDEN = range(2 * _GATES, LSTM_SCALES)
_SAME = 3  # shift of a value that keeps its scale


def lstm_step(fed, own, cell, words, zero) -> tuple[np.ndarray, np.ndarray]:
    """One step in time of all units. Gates are input, forget, new and output::

        gate[g] = int16(int16(scale[g](fed[g])) + int16(scale[4 + g](own[g])))
        i, f, n, o = sigmoid(gate[0]), sigmoid(gate[1]), tanh(gate[2]), sigmoid(gate[3])
        cell = clamp(int16(scale[8](f * cell)) + int16(scale[9](i * n)), low, high)
        hidden = int8(scale[10](o * tanh(cell)) + zero)

    ``int16`` and ``int8`` saturate. The scales round as the lanes do in mode ``tflite``. Both
    functions interpolate in one table, the words 0 to 255: a value in bits 15..0, without sign,
    and in bits 31..16 the step to the next one::

        t = (3 * x * 2^s + 4) >> 3               s: 3 of a gate, word 279 of a cell
        k = min(abs(t) >> b, 255), r = abs(t) % 2^b               b: 9 of a sigmoid, 8 of tanh
        v = (value[k] << 9) + ((step[k] * r) << (9 - b))
        sigmoid = (v + 512) >> 10, below 0 (2^25 - v + 511) >> 10
        tanh = (v - 2^24 + 256) >> 9, below 0 (2^24 - v + 255) >> 9

    Words 256 + 2 * n and 257 + 2 * n have the multiplier and the shift of scale n. Word 278 has
    the limits of the cell: ``high`` in bits 15..0, and ``low`` above.

    Parameters
    ----------
    fed, own : int32 [units, 4]
        The sums of the inputs and of the hidden values.
    cell : int16 [units]
    words : int32 [512]
        Of the ADD table.
    zero : int
        Zero point of the hidden values.

    Returns
    -------
    int8 [units], int16 [units]
        The hidden values and the cell.

    Raises
    ------
    ValueError
        If a multiplier is negative, or a shift is not in -31..31.
    """
    words = np.asarray(words, np.int64)
    scales = words[LSTM_PARAMETERS : LSTM_PARAMETERS + 2 * LSTM_SCALES].reshape(-1, 2)
    multipliers, shifts = scales[:, 0], scales[:, 1]

    def scale(n, acc):
        acc = np.asarray(acc).astype(np.int32)
        return scaled(acc, multipliers[n], shifts[n], mode="tflite").astype(np.int64)

    gates = [
        _int16(_int16(scale(g, fed[:, g])) + _int16(scale(_GATES + g, own[:, g])))
        for g in range(_GATES)
    ]
    i, f, n, o = (_function(x, words, _SAME, g == _NEW) for g, x in enumerate(gates))
    limits = int(words[LSTM_LIMITS])
    high, low = _signed16(limits), limits >> 16
    kept = _int16(scale(_FORGET, f * np.asarray(cell, np.int64)))
    total = _int16(kept + _int16(scale(_UPDATE, i * n)))
    after = np.minimum(np.maximum(total, low), high)
    shown = _function(after, words, int(words[LSTM_CELL_SHIFT]) & 7, True)
    hidden = np.clip(scale(_HIDDEN, o * shown) + zero, -128, 127)
    return hidden.astype(np.int8), after.astype(np.int16)


def _int16(x):
    """``x`` limited to 16 bits."""
    return np.clip(x, -(1 << 15), (1 << 15) - 1)


def _signed16(x):
    """The lowest 16 bits of ``x``, with sign."""
    return (x + (1 << 15)) % (1 << 16) - (1 << 15)


def _function(x, words, shift, is_tanh):
    """The sigmoid or the tanh of ``x``; `lstm_step` has the formula."""
    bits = 8 if is_tanh else 9
    t = ((3 * np.asarray(x, np.int64) << shift) + 4) >> 3
    size = np.abs(t)
    entries = words[np.minimum(size >> bits, _TABLE_LAST)]
    rest = size % (1 << bits)
    v = ((entries % (1 << 16)) << 9) + (((entries >> 16) * rest) << (9 - bits))
    if is_tanh:
        y = np.where(t >= 0, v - (1 << 24) + 256, (1 << 24) - v + 255) >> 9
    else:
        y = np.where(t >= 0, v + 512, (1 << 25) - v + 511) >> 10
    return _signed16(y)
