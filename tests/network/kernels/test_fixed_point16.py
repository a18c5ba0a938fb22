"""Sigmoid and tanh of 16 bits, for all arguments, against float64; their exact bits are LiteRT's.

LSTMs in mode ``single`` are compared with bytes of LiteRT in
`tests/network/tflite/test_recurrent.py` and `test_lstm_litert.py`.
"""

import numpy as np
import pytest

from weft.network.kernels.fixed_point16 import int16, logistic, tanh, wrap16

ALL = np.arange(-(1 << 15), 1 << 15)


def test_logistic():
    y = logistic(ALL, 3)
    assert np.abs(y / 32768 - 1 / (1 + np.exp(-ALL / 4096))).max() < 2**-12
    assert y[1 << 15] == 1 << 14 and np.array_equal(y[1:][::-1], 32767 - y[1:] + (ALL[1:] == 0))


@pytest.mark.parametrize("integer_bits", range(7))
def test_tanh(integer_bits):
    y = tanh(ALL, integer_bits)
    assert np.abs(y / 32768 - np.tanh(ALL / 2 ** (15 - integer_bits))).max() < 2**-11
    assert y[1 << 15] == 0 and np.array_equal(y[1:][::-1], -y[1:])


def test_saturation_and_wrapping():
    x = np.array([-40000, -32768, 0, 32767, 40000])
    assert int16(x).tolist() == [-32768, -32768, 0, 32767, 32767]
    assert wrap16(x).tolist() == [25536, -32768, 0, 32767, -25536]
