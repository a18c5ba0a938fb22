"""ADD and MUL with the scaler of the lanes: LiteRT's ADD is exact for all scales."""

import dataclasses

import numpy as np
import pytest
from graphs import tensor
from rejects import rejects

from weft.models.ir import Host
from weft.models.network_core.additions import addition, multiplication
from weft.models.network_core.layers import Refusal

TENSORS = (tensor((1, 4, 4, 8)), tensor((1, 4, 4, 8)), tensor((1, 4, 4, 8)))


def node(multipliers, shift):
    return Host(
        operator="ADD", name="a", position=(0,), inputs=(0, 1), outputs=(2,), kernel="litert.add",
        attributes=dict(zeros=(5, -128), multipliers=multipliers, shift=shift, zero=-3, low=-128,
                        high=127),
        reason="",
    )


@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("multipliers, shift", [
    ((1 << 20, 1 << 20), 21), ((1 << 21, 1), 22), ((1387245, -(1 << 20)), 20),
    ((2047, 2000001), 23), ((1234567, 1765432), 30),
])
def test_sums_of_litert_are_exact(multipliers, shift, own):
    """All pairs of bytes are compared with the kernel."""
    found = addition(node(multipliers, shift), own, TENSORS, "single")
    zero, other = (5, -128)[1 - own], multipliers[1 - own]
    assert found.table[0, [0, 1, 255]].tolist() == [v * other for v in (-zero, 1 - zero, -1 - zero)]


def test_refuses_another_rounding():
    with rejects(Refusal, "its results are not exact in mode tflite"):
        addition(node((1 << 20, 1 << 19), 21), 0, TENSORS, "tflite")


def mul(kernel, kinds=TENSORS, **attributes):
    half = 128 * (kinds[0].dtype == np.uint8)
    return Host(
        operator="MUL", name="m", position=(0,), inputs=(0, 1), outputs=(2,), kernel=kernel,
        attributes=dict(
            zeros=(5 + half, half - 128), zero=half - 3, low=half - 120, high=half + 127,
            **attributes,
        ),
        reason="",
    )


BYTES = tuple(dataclasses.replace(kind, dtype=np.dtype(np.uint8)) for kind in TENSORS)


@pytest.mark.parametrize("kinds", [TENSORS, BYTES], ids=["int8", "uint8"])
@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("node, mode", [
    ("tflite.mul", "tflite"), ("tflite.mul", "single"), ("litert.mul", "single"),
])
def test_factors_are_bytes_less_their_zero_points(node, mode, own, kinds):
    scales = {"tflite.mul": dict(multiplier=1481765933, shift=-6), "litert.mul": {"scale": 0.0123}}
    if (node, mode) == ("tflite.mul", "single"):  # it rounds twice
        with rejects(Refusal, "its results are not exact in mode single"):
            multiplication(mul(node, kinds, **scales[node]), own, kinds, mode)
        return
    found = multiplication(mul(node, kinds, **scales[node]), own, kinds, mode)
    zeros = (5, -128)[1 - own], (5, -128)[own]
    for factors, zero in zip(found.table, zeros, strict=True):
        assert factors[[0, 1, 255]].tolist() == [-zero, 1 - zero, -1 - zero]
    assert (found.multiply, found.zero, found.low, found.high) == (True, -3, -120, 127)


def test_products_of_litert_are_rounded_as_float32():
    """Without another multiplier 6 of 65,536 products of the first scale differ."""
    zeros = {"zeros": (61, -97)}
    for scale in (0.03304263576865196, 0.008862674236297607):
        for a in range(-128, 128, 32):
            node = mul("litert.mul", scale=scale)
            node = dataclasses.replace(node, attributes=node.attributes | zeros | {"zero": a})
            multiplication(node, 0, TENSORS, "single")


def test_ties_of_litert_are_refused():
    with rejects(Refusal, "its results are not exact in mode single"):
        multiplication(mul("litert.mul", scale=0.5), 0, TENSORS, "single")


@pytest.mark.parametrize("second, text", [
    (tensor((1, 4, 4, 8), np.int16), "its inputs must be of 8 bits"),
])
def test_refuses_other_maps(second, text):
    kinds = TENSORS[0], second, TENSORS[2]
    with rejects(Refusal, text):
        multiplication(mul("tflite.mul", multiplier=1 << 30, shift=-6), 0, kinds, "tflite")
