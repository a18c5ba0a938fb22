"""Average pools and means with the scaler of the lanes: exact, or refused."""

import numpy as np
import pytest
from rejects import rejects

from weft.golden import scaled
from weft.models import kernels
from weft.models.arithmetic import lane_parameters, lane_results
from weft.models.ir import Host
from weft.models.network_core import pools
from weft.models.network_core.layers import Refusal
from weft.models.network_core.pools import average_scale, mean_scale


def node(kernel="tflite.mean", **attributes):
    return Host(
        operator="MEAN", name="m", position=(0,), inputs=(0,), outputs=(1,), kernel=kernel,
        attributes=attributes, reason="",
    )


@pytest.mark.parametrize("dtype, zero", [(np.int8, 0), (np.uint8, -128)])
@pytest.mark.parametrize("count", [1, 4, 9, 16, 25, 49, 64, 125])
def test_averages_are_exact(count, dtype, zero):
    """Windows of equal inputs, and of one other input."""
    scale = average_scale(count, "tflite", zero)
    limits = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(limits.min, limits.max + 1, (1, count, 500)).astype(dtype)
    x[:, :, :256] = np.arange(limits.min, limits.max + 1).astype(dtype)
    x[:, 0, :256] = x[:, 0, :256][..., ::-1]
    [expected] = kernels.run("tflite.average_pool", [x.reshape(1, count, 1, 500)], dict(
        kernel_size=(count, 1), stride=(1, 1), padding=(0, 0), output=(1, 1), low=limits.min,
        high=limits.max,
    ))
    sums = scale.weight * (x.astype(np.int64) - (128 + zero if zero else 0)).sum((0, 1))
    found = scaled(sums.astype(np.int32), scale.multiplier, scale.shift)
    np.testing.assert_array_equal(found, expected.reshape(-1).astype(np.int64))


@pytest.mark.parametrize("count", [9, 25, 64, 125])
def test_the_weight_of_the_documentation(count):
    assert average_scale(count, "tflite", 0).weight == 64


@pytest.mark.parametrize("zero", [0, -128, 7])
@pytest.mark.parametrize("mode", ["tflite", "single", "onnx"])
def test_all_sums_of_an_average_are_exact(mode, zero):
    """The first weight for which all of them are; none if a weight is never exact."""
    for count in (*range(1, 40), 49, 63, 196, 257, 784):
        sums = np.arange(-128 * count, 127 * count + 1) - zero * count
        expected = np.sign(sums) * ((np.abs(sums) + count // 2) // count)

        def is_exact(weight, multiplier, shift, *, mode=mode, sums=sums, expected=expected):
            found = lane_results((weight * sums).astype(np.int32), multiplier, shift, mode)
            return np.array_equal(np.clip(found, -128 - zero, 127 - zero), expected)

        try:
            scale = average_scale(count, mode, zero)
        except Refusal:
            scale = None
        before = 64, *range(1, 64), *range(65, 128)
        if scale is not None:
            assert is_exact(scale.weight, scale.multiplier, scale.shift)
            before = before[:before.index(scale.weight)]
        if mode != "single":  # where a larger weight gives no other results
            assert not any(is_exact(w, *lane_parameters(1 / count / w, mode)) for w in before)


def test_a_large_map_is_quick(monkeypatch):
    """Of 3.2 million sums it compares the ends of runs with equal results."""
    compared, exact = [], pools._exact

    def counted(scale, sums, *arguments):
        compared.append(len(sums))
        return exact(scale, sums, *arguments)

    monkeypatch.setattr(pools, "_exact", counted)
    average_scale.__wrapped__(12_544, "tflite", 0)
    assert 2 * 255 <= sum(compared) < 2000


def test_refuses_large_windows():
    with rejects(Refusal, "its windows must have at most 65536 inputs, not 65537"):
        average_scale(65537, "tflite", 0)


@pytest.mark.parametrize("multiplier", [1 << 30, 1518500250, 1 << 30 | 12345, 2147483000])
@pytest.mark.parametrize("size", [(4, 3), (7, 7), (1, 2)])
def test_means_are_exact(size, multiplier):
    mean = node(axes=(1, 2), shape=(1, 500), zeros=(3, -7), multiplier=multiplier, shift=0)
    scale = mean_scale(mean, (1, *size, 500), 0, "tflite")
    x = np.random.default_rng(1).integers(-128, 128, (1, *size, 500)).astype(np.int8)
    [expected] = kernels.run("tflite.mean", [x], mean.attributes)
    sums = scale.weight * (x.astype(np.int64) - 3).sum((0, 1, 2)).astype(np.int32)
    found = np.clip(scaled(sums, scale.multiplier, scale.shift) - 7, -128, 127)
    np.testing.assert_array_equal(found, expected.reshape(-1))


@pytest.mark.parametrize("half, zeros", [(0, (3, -7)), (128, (131, 121))])
def test_means_of_litert_are_exact(half, zeros):
    dtype = np.uint8 if half else np.int8
    mean = node("litert.sum", axes=(1, 2), shape=(1, 500), zeros=zeros, scale=0.0271828)
    scale = mean_scale(mean, (1, 7, 7, 500), half, "single")
    x = np.random.default_rng(1).integers(0, 256, (1, 7, 7, 500)).astype(np.uint8).view(dtype)
    [expected] = kernels.run("litert.sum", [x], mean.attributes)
    sums = scale.weight * (x.astype(np.int64) - zeros[0]).sum((0, 1, 2))
    found = scaled(sums.astype(np.int32), scale.multiplier, scale.shift, mode="single")
    limits = np.iinfo(dtype)
    found = np.clip(found.astype(np.int64) + zeros[1], limits.min, limits.max)
    np.testing.assert_array_equal(found, expected.reshape(-1))


def test_refuses_means_of_litert_with_ties():
    """LiteRT rounds ties to even, the lanes round them up."""
    mean = node("litert.sum", axes=(1, 2), shape=(1, 5), zeros=(0, 0), scale=1 / 16)
    with rejects(Refusal, "sums of 16 inputs are not exact with the scaler of the lanes"):
        mean_scale(mean, (1, 4, 4, 5), 0, "single")


def test_refuses_sums_of_many_values():
    mean = node(axes=(1, 2), shape=(1, 5), zeros=(0, 0), multiplier=1518500250, shift=0)
    with rejects(Refusal, "its results must be of at most 65536 values, not 65792"):
        mean_scale(mean, (1, 256, 257, 5), 0, "tflite")
