"""exp of 32 bits, sigmoid and tanh of 16 bits against float64; their exact bits are LiteRT's.

LSTMs in mode ``single`` are compared with bytes of LiteRT in
`tests/models/tflite/test_recurrent.py` and `test_lstm_litert.py`.
"""

import numpy as np
import pytest

from weft.models.kernels.fixed_point import INT16, INT32

ALL = np.arange(-(1 << 15), 1 << 15)


def test_logistic():
    y = INT16.logistic(ALL, 3)
    assert np.abs(y / 32768 - 1 / (1 + np.exp(-ALL / 4096))).max() < 2**-12
    assert y[1 << 15] == 1 << 14 and np.array_equal(y[1:][::-1], 32767 - y[1:] + (ALL[1:] == 0))


@pytest.mark.parametrize("integer_bits", range(7))
def test_tanh(integer_bits):
    y = INT16.tanh(ALL, integer_bits)
    assert np.abs(y / 32768 - np.tanh(ALL / 2 ** (15 - integer_bits))).max() < 2**-11
    assert y[1 << 15] == 0 and np.array_equal(y[1:][::-1], -y[1:])


def test_saturation_and_wrapping():
    x = np.array([-40000, -32768, 0, 32767, 40000])
    assert INT16.saturate(x).tolist() == [-32768, -32768, 0, 32767, 32767]
    assert INT16.wrap(x).tolist() == [25536, -32768, 0, 32767, -25536]


def test_exp_is_near_the_exponential():
    x = -np.arange(0, 1 << 31, 7_654_321)
    found = INT32.exp_on_negative(x, 5) / 2**31
    assert np.abs(found - np.exp(x / 2**26)).max() < 2e-7
    assert INT32.exp_on_negative(np.array([0]), 5).tolist() == [(1 << 31) - 1]
