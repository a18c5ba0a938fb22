"""Pools, reductions and resizing, in numpy, against TFLite Micro."""

import itertools

import numpy as np
import pytest
from tflite_files import T
from tflite_operators import FLOAT, INT8, INT16, check, q


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("dtype", [INT8, INT16, FLOAT])
@pytest.mark.parametrize("name", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
def test_pools(rng, name, dtype, padding):
    for (kh, kw), (sh, sw), fused in itertools.product(
        [(1, 1), (3, 2), (2, 5)], [(1, 1), (2, 3)], (0, 1, 3)
    ):
        less = (1, 1) if padding == 0 else (kh, kw)
        out = [(n + s - m) // s for n, s, m in zip((7, 8), (sh, sw), less, strict=True)]
        x = q(rng, (2, 7, 8, 3), dtype)
        y = T((2, *out, 3), dtype, scale=x.scale, zero=x.zero)
        options = {
            "padding": padding, "strideH": sh, "strideW": sw, "filterHeight": kh,
            "filterWidth": kw, "fusedActivationFunction": fused,
        }
        check(rng, name, [x], [y], ("Pool2DOptions", options), trivial=True)


AXES = [((1, 2), True), ((2, 1), False), ((-1,), False), ((0,), True), ((1,), False)]


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("dtype", [INT8, INT16])
@pytest.mark.parametrize("name", ["MEAN", "SUM"])
def test_sums(rng, name, dtype, equal):
    for axes, keep in AXES:
        shape = np.zeros((2, 5, 6, 3)).sum(axes, keepdims=keep).shape
        x, y = q(rng, (2, 5, 6, 3), dtype), q(rng, shape, dtype)
        if name == "SUM" and not equal:
            y.scale = x.scale * 20
        if equal:
            y = T(shape, dtype, scale=x.scale, zero=x.zero)
        axes = T(data=np.array(axes, np.int32))
        check(rng, name, [x, axes], [y], ("ReducerOptions", {"keepDims": keep}), trivial=True)


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
@pytest.mark.parametrize("name", ["REDUCE_MAX", "REDUCE_MIN"])
def test_reduced_extremes(rng, name, dtype):
    for axes, keep in AXES:
        shape = np.zeros((2, 5, 6, 3)).sum(axes, keepdims=keep).shape
        x = q(rng, (2, 5, 6, 3), dtype)
        y = T(shape, dtype, scale=x.scale, zero=x.zero)
        axes = T(data=np.array(axes, np.int32))
        check(rng, name, [x, axes], [y], ("ReducerOptions", {"keepDims": keep}))


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
@pytest.mark.parametrize("name", ["ARG_MAX", "ARG_MIN"])
def test_arg_extremes(rng, name, dtype):
    kind = "ArgMaxOptions" if name == "ARG_MAX" else "ArgMinOptions"
    for axis in (0, 1, -1):
        shape = tuple(np.delete((4, 5, 300), axis))
        x, y = q(rng, (4, 5, 300), dtype), T(shape, "int32")
        check(rng, name, [x, T(data=np.array([axis], np.int32))], [y], (kind, {"outputType": 2}))


@pytest.mark.parametrize("align, half", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("name, dtype", [
    ("RESIZE_BILINEAR", INT8), ("RESIZE_NEAREST_NEIGHBOR", INT8),
    ("RESIZE_NEAREST_NEIGHBOR", FLOAT),
])
def test_resize(rng, name, dtype, align, half):
    title = "ResizeBilinear" if name == "RESIZE_BILINEAR" else "ResizeNearestNeighbor"
    options = f"{title}Options", {"alignCorners": align, "halfPixelCenters": half}
    for size in ((1, 1), (3, 9), (10, 14), (5, 7), (17, 4)):
        x = q(rng, (2, 5, 7, 3), dtype)
        y = T((2, *size, 3), dtype, scale=x.scale, zero=x.zero)
        check(rng, name, [x, T(data=np.array(size, np.int32))], [y], options, trivial=True)
