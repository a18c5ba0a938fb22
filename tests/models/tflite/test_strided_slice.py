"""STRIDED_SLICE with new axes, an ellipsis and single indices, against numpy and LiteRT."""

import numpy as np
import pytest
from graph_runner import run_graph
from rejects import rejects
from tflite_files import T, build

from weft.models.errors import ModelError
from weft.models.tflite import load
from weft.models.tflite.runtime import litert

INT8, I32 = np.int8, np.int32
NEW = {"newAxisMask": 2}
SLICES = [
    # begin, end, strides, masks; what numpy takes
    ((1, 0, 0), (3, 1, 6), (1, 1, 2), NEW, np.s_[1:3, None, 0:6:2]),
    ((1,), (3,), (1,), {}, np.s_[1:3]),
    ((0, 1), (0, 4), (1, 2), {"ellipsisMask": 1}, np.s_[..., 1:4:2]),
    ((1, 0, 0, 2), (0, 0, 0, 5), (1, 1, 1, 1), {
        "ellipsisMask": 2, "newAxisMask": 6, "shrinkAxisMask": 7}, np.s_[1, ..., None, 2:5]),
    ((3, 0), (0, 0), (1, 1), {"shrinkAxisMask": 1, "beginMask": 1, "newAxisMask": 2},
     np.s_[0, None]),
    ((0, 0, 0, 0), (0, 0, 0, 0), (1, 1, 1, 1), {"ellipsisMask": 1, "newAxisMask": 14},
     np.s_[..., None, None, None]),
    ((9, 0), (-9, 0), (-2, 1), {"newAxisMask": 2, "beginMask": 1}, np.s_[:-9:-2, None]),
]


@pytest.mark.parametrize("begin, end, strides, masks, taken", SLICES)
def test_new_axes_and_an_ellipsis(rng, begin, end, strides, masks, taken):
    """The slice of numpy, and of LiteRT if its wheel is installed."""
    x = rng.integers(-128, 128, (4, 5, 6)).astype(INT8)
    data = strided(x[taken].shape, begin, end, strides, masks)
    graph = load(data, "net")
    assert [node.kernel for node in graph.nodes] == ["slice"]
    found = run_graph(graph, [x])[graph.outputs[0]]
    np.testing.assert_array_equal(found, x[taken])
    pytest.importorskip("ai_edge_litert")
    np.testing.assert_array_equal(found, litert(data, [[x]])[0][0])


def strided(shape, begin, end, strides, masks):
    tensors = {"x": T((4, 5, 6), scale=0.05, zero=3)}
    tensors |= {name: T(data=np.array(part, I32)) for name, part in zip(
        "bes", (begin, end, strides), strict=True
    )}
    tensors["y"] = T(shape, scale=0.05, zero=3)
    operator = "STRIDED_SLICE", ["x", "b", "e", "s"], ["y"], ("StridedSliceOptions", masks), 2
    return build(tensors, [operator], ["x"], ["y"])


@pytest.mark.parametrize("numbers, masks, text", [
    (((0, 0), (1, 1), (1, 1)), {"ellipsisMask": 3}, "ellipses must be at most 1, not 2"),
    (((0,) * 4, (1,) * 4, (1,) * 4), {}, "entries must name at most 3 axes, not 4"),
    (((0,) * 4, (1,) * 4, (1,) * 4), {"ellipsisMask": 1},
     "an ellipsis must stand for at least 1 axis, not 0"),
    (((0, 0), (1,), (1,)), {}, "begin, end and strides must have equal lengths, not 2, 1, 1"),
    (((1,), (0,), (-1,)), {"shrinkAxisMask": 1},
     "stride of the single index of axis 0 must be above 0: -1"),
    (((0,), (1,), (1,)), {"offset": True}, "option offset must be false, not true"),
])
def test_rejects_a_strided_slice(numbers, masks, text):
    with rejects(ModelError, f"net: operator 0 (STRIDED_SLICE, 'y'): {text}"):
        load(strided((1, 5, 6), *numbers, masks), "net")
