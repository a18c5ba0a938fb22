"""Parameters of the results of the core with a microprogram, and the results by golden models."""

import numpy as np

from weft.golden import requantize, scaled

__all__ = ["JOB", "LINES", "TABLE", "expected", "parameters"]

LINES = [  # bias, multiplier, shift
    (-5, 1 << 30, -9), (1 << 30, (1 << 31) - 1, -24), (77, 3 << 29, -3), (0, 1 << 30, -30),
    (1234, 5 << 28, -12),
]
ADD_LINE, ADD_PARAMETERS = 10, (0, 3 << 29, -20)
SCALES = [(1 << 30, 0), ((1 << 31) - 1, -1)]  # of the added map and of the results
ADD_ZERO = 3
JOB = {
    "add_line": ADD_LINE, "zero": -7, "low": -100, "high": 120, "sum_zero": 100,
    "sum_low": -128, "sum_high": 127,
}
TABLE = [
    int(t) for scale, zero in zip(SCALES, (ADD_ZERO, -7), strict=True)
    for t in scaled((np.arange(256).astype(np.int8).astype(np.int64) - zero) * 2**20, *scale,
                    mode="tflite")
]


def _line(number):
    """A parameter line: LINES again and again, but the one of ADD."""
    return ADD_PARAMETERS if number == ADD_LINE else LINES[number % len(LINES)]


def parameters(line, held):
    """The parameters of a line, with the multiplier of the line ``held``."""
    (bias, _, shift), (_, multiplier, _) = _line(line), _line(held)
    return {"bias": bias, "multiplier": multiplier, "shift": shift}


def _wrapped(value):
    return np.array(value).astype(np.int32)


def expected(kind, sums, line, added):
    """A result of a job "plain", with "add", or with "sums", of the sums of a column."""
    bias, multiplier, shift = LINES[line % len(LINES)]
    total = _wrapped([sums + bias])
    if kind == "sums":
        return int(total[0])
    y = requantize(
        total, np.array([multiplier]), np.array([shift]), mode="tflite", zero_point=-7, low=-100,
        high=120,
    )
    if kind == "plain":
        return int(y[0])
    both = TABLE[added % 256] + TABLE[256 + int(y[0]) % 256]
    return int(requantize(_wrapped([both]), *ADD_PARAMETERS[1:], mode="tflite", zero_point=100)[0])
