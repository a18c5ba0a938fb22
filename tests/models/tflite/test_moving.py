"""Operators that move values, in numpy, against TFLite Micro."""

import numpy as np
import pytest
from tflite_files import T
from tflite_operators import FLOAT, INT8, check, q

I32 = np.int32


def moving():
    """Cases: name, input shapes, constants, output shapes, options."""
    yield "RESHAPE", [(2, 6)], [np.array([3, 4], I32)], [(3, 4)], None
    yield "RESHAPE", [(2, 6)], [], [(4, 3)], ("ReshapeOptions", {"newShape": [4, 3]})
    yield "SQUEEZE", [(2, 1, 6)], [], [(2, 6)], ("SqueezeOptions", {"squeezeDims": [1]})
    yield "EXPAND_DIMS", [(2, 6)], [np.array([1], I32)], [(2, 1, 6)], ("ExpandDimsOptions", {})
    axes = np.array([0, 3, 1, 2], I32)
    yield "TRANSPOSE", [(2, 3, 4, 5)], [axes], [(2, 5, 3, 4)], ("TransposeOptions", {})
    for axis in (1, -1):
        yield (
            "CONCATENATION", [(2, 3), (2, 3)], [], [np.zeros((2, 3)).repeat(2, axis).shape],
            ("ConcatenationOptions", {"axis": axis}),
        )
    for axis, shape in ((1, (2, 2, 3)), (-1, (2, 3, 2))):
        yield "PACK", [(2, 3), (2, 3)], [], [shape], (
            "PackOptions", {"axis": axis, "valuesCount": 2},
        )
    yield "UNPACK", [(2, 3, 4)], [], [(2, 4)] * 3, ("UnpackOptions", {"axis": 1, "num": 3})
    yield "SLICE", [(4, 5, 6)], [np.array([1, 0, 2], I32), np.array([2, -1, 3], I32)], [
        (2, 5, 3),
    ], ("SliceOptions", {})
    yield "PAD", [(1, 2, 3, 1)], [np.array([[0, 0], [1, 2], [0, 3], [1, 0]], I32)], [
        (1, 5, 6, 2),
    ], ("PadOptions", {})
    yield "MIRROR_PAD", [(3, 4)], [np.array([[1, 2], [2, 0]], I32)], [(6, 6)], (
        "MirrorPadOptions", {"mode": 0},
    )
    yield "MIRROR_PAD", [(3, 4)], [np.array([[1, 2], [2, 0]], I32)], [(6, 6)], (
        "MirrorPadOptions", {"mode": 1},
    )
    yield "GATHER", [(3, 5, 4)], [np.array([[4, 0], [2, 2]], I32)], [(3, 2, 2, 4)], (
        "GatherOptions", {"axis": 1},
    )
    yield "SPACE_TO_DEPTH", [(2, 4, 6, 3)], [], [(2, 2, 3, 12)], (
        "SpaceToDepthOptions", {"blockSize": 2},
    )
    yield "DEPTH_TO_SPACE", [(2, 2, 3, 12)], [], [(2, 4, 6, 3)], (
        "DepthToSpaceOptions", {"blockSize": 2},
    )
    yield "BROADCAST_TO", [(3, 1)], [np.array([2, 3, 4], I32)], [(2, 3, 4)], None
    for begin, end, step, masks, shape in (
        ((0, 1, 2), (4, 5, 6), (1, 2, 3), {}, (4, 2, 2)),
        ((-1, 4, 5), (-5, -6, 0), (-1, -2, -2), {}, (4, 3, 3)),
        ((9, 9, 9), (9, 9, 4), (1, 1, 1), {"beginMask": 5, "endMask": 3, "shrinkAxisMask": 0},
         None),
        ((1, 0, -1), (9, 9, 9), (1, 1, 1), {"shrinkAxisMask": 5, "endMask": 2}, (5,)),
    ):
        if shape is not None:
            yield "STRIDED_SLICE", [(4, 5, 6)], [
                np.array(part, I32) for part in (begin, end, step)
            ], [shape], ("StridedSliceOptions", masks)


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
@pytest.mark.parametrize("case", list(moving()), ids=lambda case: case[0])
def test_moving(rng, case, dtype):
    name, inputs, constants, outputs, options = case
    x = [q(rng, inputs[0], dtype)]
    x += [T(shape, dtype, scale=x[0].scale, zero=x[0].zero) for shape in inputs[1:]]
    y = [T(shape, dtype, scale=x[0].scale, zero=x[0].zero) for shape in outputs]
    check(rng, name, [*x, *(T(data=value) for value in constants)], y, options)


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
def test_split(rng, dtype):
    x = q(rng, (2, 6, 4), dtype)
    def part(size):
        return T((2, size, 4), dtype, scale=x.scale, zero=x.zero)

    axis = T(data=np.array([1], I32))
    check(rng, "SPLIT", [axis, x], [part(2)] * 3, ("SplitOptions", {"numSplits": 3}))
    sizes = T(data=np.array([1, 3, 2], I32))
    parts = [part(1), part(3), part(2)]
    check(rng, "SPLIT_V", [x, sizes, axis], parts, ("SplitVOptions", {"numSplits": 3}))


@pytest.mark.parametrize("dtype", [INT8, FLOAT])
def test_padv2(rng, dtype):
    x = q(rng, (1, 2, 3, 1), dtype)
    y = T((1, 5, 6, 2), dtype, scale=x.scale, zero=x.zero)
    pairs = T(data=np.array([[0, 0], [1, 2], [0, 3], [1, 0]], I32))
    value = T(data=np.array([5], dtype), scale=x.scale, zero=x.zero)
    check(rng, "PADV2", [x, pairs, value], [y], ("PadV2Options", {}))
