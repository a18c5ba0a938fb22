"""Files of converters: batches of any size, functions of float32, and lost variables."""

import numpy as np
import pytest
from graph_runner import run_graph
from tflite_files import T, build, micro

from weft.models.errors import ModelError
from weft.models.tflite import load
from weft.models.tflite.runtime import litert

I32 = np.int32
S = dict(scale=0.5, zero=-3)


def blocks(*values):
    return T(data=np.array(values, I32))


def dilated(batch, any_size):
    """A dilated convolution of one row, as Keras writes it; ``batch`` is stored for its middle."""
    rng = np.random.default_rng(7)
    dynamic = dict(any_size=(0,) if any_size else ())
    tensors = {
        "x": T((1, 10, 3), **S, **dynamic), "blocks": blocks(2), "pads": blocks([0, 0]),
        "crops": blocks([0, 0]), "axis": blocks(1), "row": blocks(-1, 3, 4),
        "s": T((batch, 5, 3), **S, **dynamic), "e": T((batch, 1, 5, 3), **S, **dynamic),
        "w": T(data=rng.integers(-127, 128, (4, 1, 3, 3), np.int8), scale=0.01),
        "b": T(data=rng.integers(-99, 99, 4, I32), scale=0.005),
        "c": T((batch, 1, 3, 4), scale=0.125, zero=5, **dynamic),
        "r": T((batch, 3, 4), scale=0.125, zero=5, **dynamic),
        "y": T((1, 6, 4), scale=0.125, zero=5, **dynamic),
    }
    operators = [
        ("SPACE_TO_BATCH_ND", ["x", "blocks", "pads"], ["s"], None),
        ("EXPAND_DIMS", ["s", "axis"], ["e"], ("ExpandDimsOptions", {})),
        ("CONV_2D", ["e", "w", "b"], ["c"], (
            "Conv2DOptions", {"padding": 1, "strideH": 1, "strideW": 1},
        )),
        ("RESHAPE", ["c", "row"], ["r"], None),
        ("BATCH_TO_SPACE_ND", ["r", "blocks", "crops"], ["y"], None),
    ]
    return build(tensors, operators, ["x"], ["y"])


def test_sizes_of_any_size_are_computed(rng):
    x = rng.integers(-128, 128, (1, 10, 3), np.int8)
    fixed, dynamic = load(dilated(2, False), "net"), load(dilated(1, True), "net")
    [expected] = micro(dilated(2, False), [x])
    for graph in (fixed, dynamic):
        assert np.array_equal(run_graph(graph, [x])[graph.outputs[0]], expected)
    assert "4 tensors have other sizes than the file stores" in dynamic.notes[-1]
    assert not fixed.notes


def test_padding_is_the_zero_point_where_a_size_is_wrong():
    tensors = {
        "x": T((1, 3, 2), **S, any_size=(0,)), "blocks": blocks(2), "pads": blocks([1, 2]),
        "y": T((1, 3, 2), **S, any_size=(0,)),
    }
    operators = [("SPACE_TO_BATCH_ND", ["x", "blocks", "pads"], ["y"], None)]
    graph = load(build(tensors, operators, ["x"], ["y"]), "net")
    y = run_graph(graph, [np.arange(6, dtype=np.int8).reshape(1, 3, 2)])[graph.outputs[0]]
    assert y.tolist() == [[[-3, -3], [2, 3], [-3, -3]], [[0, 1], [4, 5], [-3, -3]]]


def test_rejects_a_wrong_size_that_is_fixed():
    with pytest.raises(ModelError, match=r"output 0 must be of shape \(2, 5, 3\), not \(1, 5, 3\)"):
        load(dilated(1, False), "net")


def test_rejects_a_signature_that_is_longer_than_the_shape():
    tensors = {"x": T((2, 6)), "y": T((3, 5), any_size=(2,)), "row": blocks(3, 5)}
    data = build(tensors, [("RESHAPE", ["x", "row"], ["y"], None)], ["x"], ["y"])
    with pytest.raises(ModelError, match=r"must have 12 elements, not shape \(3, 5\)"):
        load(data, "net")


def test_rejects_the_runtime_after_a_wrong_size():
    tensors = {
        "x": T((1, 6, 3), "float32", any_size=(0,)), "blocks": blocks(2), "pads": blocks([0, 0]),
        "s": T((1, 3, 3), "float32", any_size=(0,)), "y": T((1, 3, 3), "float32", any_size=(0,)),
    }
    operators = [
        ("SPACE_TO_BATCH_ND", ["x", "blocks", "pads"], ["s"], None),
        ("LOG", ["s"], ["y"], None),
    ]
    data = build(tensors, operators, ["x"], ["y"])
    with pytest.raises(ModelError, match=r"operator 1 \(LOG.*fixed batch of 1"):
        load(data, "net")


@pytest.mark.parametrize("shape, block, pairs, padded", [
    ((2, 5, 4, 3), (2, 2), [[0, 1], [2, 0]], (8, 3, 3, 3)),
    ((1, 6, 3), (3,), [[2, 1]], (3, 3, 3)),
    ((1, 4, 5, 2), (1, 5), [[1, 1], [0, 0]], (5, 6, 1, 2)),
])
def test_batches_of_blocks(rng, shape, block, pairs, padded):
    """Against LiteRT, as TFLite Micro pads with a number that it does not initialize."""
    pytest.importorskip("ai_edge_litert")
    common = {"block": blocks(*block), "pairs": T(data=np.array(pairs, I32))}
    for name, before, after in (
        ("SPACE_TO_BATCH_ND", shape, padded), ("BATCH_TO_SPACE_ND", padded, shape),
    ):
        tensors = {"x": T(before, **S), "y": T(after, **S), **common}
        data = build(tensors, [(name, ["x", "block", "pairs"], ["y"], None)], ["x"], ["y"])
        graph = load(data, "net")
        assert "tflite.model" not in [node.kernel for node in graph.nodes]
        x = rng.integers(-128, 128, before, np.int8)
        [[expected]] = litert(data, [[x]])
        assert np.array_equal(run_graph(graph, [x])[graph.outputs[0]], expected)


def test_float_gelu_and_select(rng):
    import math

    for approximate in (False, True):
        tensors = {"x": T((3, 4), "float32"), "y": T((3, 4), "float32")}
        data = build(tensors, [
            ("GELU", ["x"], ["y"], ("GeluOptions", {"approximate": approximate})),
        ], ["x"], ["y"])
        graph = load(data, "net")
        x = rng.normal(size=(3, 4)).astype(np.float32)
        inner = [math.sqrt(2 / math.pi) * (v + 0.044715 * v**3) for v in x.ravel().tolist()]
        gate = [math.tanh(v) for v in inner] if approximate else [
            math.erf(v / math.sqrt(2)) for v in x.ravel().tolist()
        ]
        y = x / 2 * (1 + np.reshape(gate, x.shape))
        assert np.allclose(run_graph(graph, [x])[graph.outputs[0]], y, atol=1e-6)
    tensors = {"c": T((3, 4), "bool"), "y": T((3, 4), "float32"), "x": T((3, 4), "float32"),
               "z": T((1, 4), "float32")}
    same = build(tensors, [("SELECT", ["c", "x", "x"], ["y"], None)], ["c", "x"], ["y"])
    assert load(same, "net").nodes[0].kernel == "select"
    other = build(tensors, [("SELECT", ["c", "x", "z"], ["y"], None)], ["c", "x", "z"], ["y"])
    with pytest.raises(ModelError, match=r"SELECT, 'y'\): shapes must be equal"):
        load(other, "net")


def test_rejects_variables_without_a_value():
    tensors = {"h": T((), "resource"), "y": T((2, 2), "float32")}
    data = build(tensors, [
        ("VAR_HANDLE", [], ["h"], ("VarHandleOptions", {"sharedName": "v"})),
        ("READ_VARIABLE", ["h"], ["y"], None),
    ], [], ["y"])
    with pytest.raises(ModelError, match=r"READ_VARIABLE.*no operator writes the variable"):
        load(data, "net")
