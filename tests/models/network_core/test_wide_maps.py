"""Tensors of int16 as maps of bytes: the bytes, and the scales of the lanes for 64-bit sums."""

import numpy as np
import pytest
from products import integers

from weft.golden import scaled
from weft.models.ir import Gemm, Graph, Requantization, Tensor
from weft.models.kernels.fixed_point import multiply_wide
from weft.models.network_core.layers import Refusal
from weft.models.network_core.wide_maps import (
    bytes_of,
    moved_bytes,
    pair_constants,
    pair_scales,
    values_of,
    with_pairs,
)
from weft.quantize import tflite_scale


def test_the_bytes_of_values():
    values = np.int16([[0, 1, -1], [127, 32767, -32768]])
    assert bytes_of(values).tolist() == [
        [0, -128, 0, -127, -1, 127], [0, -1, 127, 127, -128, -128],
    ]
    every = np.arange(-(1 << 15), 1 << 15).astype(np.int16)
    assert np.array_equal(values_of(bytes_of(every)), every)


def test_places_of_bytes_and_constants():
    """A constant byte v is -129 - v."""
    assert moved_bytes(np.array([[3, 0], [1, 2]])).tolist() == [[6, 7, 0, 1], [2, 3, 4, 5]]
    constants = pair_constants([0, -1, 32767, -32768])
    assert (constants < 0).all()
    expected = [-129 - v for v in (0, -128, -1, 127, 127, 127, -128, -128)]
    assert moved_bytes(constants).tolist() == expected


class Product:
    """A product of int16, as the core has it."""

    def __init__(self, weights, scale, *, bias=None, zero=0, x_zero=0, wide=True):
        given = Requantization(
            x_scale=1.0, w_scale=np.float32(scale), y_scale=1.0, zero=zero, low=-32768,
            high=32767, dtype=np.dtype(np.int16), wide=wide,
        )
        self.gemm = Gemm(
            operator="FULLY_CONNECTED", name="y", position=(0,), inputs=(0,), outputs=(1,), x=0,
            x_zero=x_zero, weights=np.int8(weights), bias=bias, requantization=given,
        )

    def node(self):
        tensors = tuple(Tensor(name, (1, 1), np.dtype(np.int16)) for name in "xy")
        graph = Graph(
            name="net", source="tflite", tensors=tensors, nodes=(self.gemm,), inputs=(0,),
            outputs=(1,), operators=("FULLY_CONNECTED",),
        )
        [node], _, wide = with_pairs(graph)
        assert wide == {0, 1}
        return node

    def scales(self):
        return pair_scales(self.node(), "tflite")


@pytest.mark.parametrize("scale", [
    0.999999, 0.75, 0.5, 0.37, 1 / 3, 2.0**-8, 0.0123, 1.9e-4, 2.0**-17, 2.0**-16 * 1.1, 3.7, 64.0,
])
def test_a_lane_rounds_64_bit_sums_once(scale):
    """Sums of all magnitudes, and those next to ties."""
    rng = np.random.default_rng(1)
    multiplier, shift = tflite_scale(1.0, np.float32([scale]), 1.0)
    sums = np.concatenate([
        rng.integers(-(1 << 30), 1 << 30, 20000) >> rng.integers(0, 30, 20000),
        [-(1 << 30), (1 << 30) - 1, 0, 1, -1],
        np.rint((np.arange(-2000, 2000) + 0.5) / scale).astype(np.int64),
    ])
    sums = sums[np.abs(sums) < (1 << 30) / max(1, scale)]
    [m, same], [s, _] = Product([[[1]]], scale).scales()
    assert m == same
    found = scaled(sums.astype(np.int32), m, s, mode="tflite")
    assert np.array_equal(found, multiply_wide(sums, multiplier, shift))


def test_a_sum_of_32_bits_keeps_its_scale():
    """With a bias of 32 bits the runtime has the same sums and scales as for int8."""
    multiplier, shift = tflite_scale(1.0, np.float32([2.0**-20]), 1.0)
    weights = np.full((1, 5000, 1), 127)
    m, s = Product(weights, 2.0**-20, bias=np.zeros(1, np.int64), wide=False).scales()
    assert (m == multiplier).all() and (s == shift).all()


def test_sums_that_may_exceed_32_bits_are_refused():
    """The largest sum is the one of the least inputs with weights below 0."""
    fits = np.full((1, 512, 1), -128)  # the largest sum is 2^31
    with pytest.raises(Refusal, match=r"^its sums may have 33 bits, with scales up to 2\^0, and"):
        Product(fits, 0.01).scales()
    fits[0, 0] = -127
    Product(fits, 0.01).scales()  # of less than 2^31
    Product(np.full((1, 516, 1), 127), 0.01).scales()
    with pytest.raises(Refusal, match="may have 33 bits"):
        Product(np.full((1, 516, 1), 127), 0.01, bias=np.int64([-(1 << 21)])).scales()
    with pytest.raises(Refusal, match=r"may have 32 bits, with scales up to 2\^2"):
        Product(np.full((1, 400, 1), 127), 3.0).scales()


@pytest.mark.parametrize("fields, reason", [
    ({"scale": 1.3 * 2.0**-18},
     r"its scales must be at least 2\^-17, and one is below 2\^-17"),
    ({"zero": 3}, "zero points of int16 must be 0, not 0 and 3"),
    ({"x_zero": -1}, "zero points of int16 must be 0, not -1 and 0"),
])
def test_what_the_lanes_cannot_compute(fields, reason):
    with pytest.raises(Refusal, match=reason):
        Product([[[1]]], **{"scale": 0.01, **fields}).scales()


def test_weights_of_columns_for_the_bytes():
    """The first of two columns reads the high bytes, the other one the low bytes."""
    weights = integers(np.random.default_rng(1), np.int8, 1, 6, 5)
    node = Product(weights, np.full(5, 0.01), bias=np.arange(5)).node()
    found = node.weights.reshape(6, 2, 5, 2)
    assert np.array_equal(found[:, 0, :, 0], weights[0])
    assert np.array_equal(found[:, 1, :, 1], weights[0])
    assert not found[:, 0, :, 1].any() and not found[:, 1, :, 0].any()
    assert node.bias.tolist() == [0, 0, 0, 1, 0, 2, 0, 3, 0, 4]
