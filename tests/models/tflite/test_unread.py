"""Parts of a file that no runtime reads: Weft runs the file, and its bytes equal TFLite Micro's."""

import flatbuffers
import numpy as np
import pytest
import tflite
from graph_runner import run_graph
from tflite_files import T, build, micro

from tools.tflite_writer import schema
from weft.config import Config
from weft.host import GoldenTransport
from weft.models import ModelError
from weft.models.compiler import compile_graph
from weft.models.exactness import in_mode
from weft.models.loading import load as load_file
from weft.models.tflite import load
from weft.models.tflite.runtime import litert

W, B = 1, 2  # tensors
X = np.array([[-128, -5, 0, 3, 77, 127], [9, 8, -7, 100, -100, 1]], np.int8)


def file(change):
    """One fully connected layer, changed by ``change(model, classes of the schema)``."""
    rng = np.random.default_rng(3)
    tensors = {
        "x": T(X.shape, scale=0.1, zero=3), "y": T((2, 4), scale=0.3, zero=-2),
        "w": T(data=rng.integers(-127, 128, (4, 6), np.int8), scale=0.02),
        "b": T(data=rng.integers(-99, 99, 4, np.int32), scale=0.002),
    }
    tensors = {name: tensors[name] for name in "xwby"}
    operator = "FULLY_CONNECTED", ["x", "w", "b"], ["y"], ("FullyConnectedOptions", {})
    return changed(build(tensors, [operator], ["x"], ["y"]), change)


def changed(data, change):
    """A file, changed by ``change(model, classes of the schema)``."""
    s = schema()
    model = s.ModelT.InitFromObj(s.Model.GetRootAs(data, 0))
    change(model, s)
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def scales(number, count, axis, zeros=None):
    """Other scales of a tensor, and their axis."""
    def change(model, _):
        given = model.subgraphs[0].tensors[number].quantization
        given.scale = np.full(count, given.scale[0], np.float32)
        given.zeroPoint = np.zeros(count if zeros is None else zeros, np.int64)
        given.quantizedDimension = axis

    return change


def shape(number, *size):
    def change(model, _):
        model.subgraphs[0].tensors[number].shape = list(size)

    return change


def longer(model, _):
    """A buffer with more bytes than the bias has."""
    buffer = model.buffers[model.subgraphs[0].tensors[B].buffer]
    buffer.data = np.append(buffer.data, np.arange(9, dtype=np.uint8))


def unused(kind, size, data=None):
    """A further tensor."""
    def change(model, s):
        tensor = s.TensorT()
        tensor.shape, tensor.type, tensor.buffer = list(size), kind, 0
        if data is not None:
            model.buffers.append(s.BufferT())
            model.buffers[-1].data, tensor.buffer = data, len(model.buffers) - 1
        model.subgraphs[0].tensors.append(tensor)

    return change


def names(model, _):
    for tensor in model.subgraphs[0].tensors:
        tensor.name = None


def about(model, s):
    """A signature and metadata of parts that do not exist, and limits that are none."""
    signature, entry, code = s.SignatureDefT(), s.MetadataT(), s.OperatorCodeT()
    signature.signatureKey, signature.subgraphIndex = b"serve", 9
    entry.name, entry.buffer = b"about", 90
    code.builtinCode, code.deprecatedBuiltinCode, code.version = 250, 127, 1
    model.signatureDefs, model.metadata = [signature], [entry]
    model.operatorCodes.append(code)
    model.operatorCodes[0].version = 99
    model.subgraphs[0].tensors[0].quantization.min = [3.0]
    model.subgraphs[0].tensors[0].quantization.max = [-1.0, 2.0]


@pytest.mark.parametrize("change", [
    scales(B, 4, 3), scales(B, 4, -1), scales(B, 3, 0), scales(B, 1, 7), scales(B, 1, 0, zeros=3),
    scales(W, 1, 5), shape(B, 1, 4), shape(B, 1, 1, 1, 4), shape(B, 4, 1), shape(B, 2, 2),
    shape(W, 1, 1, 4, 6), longer, unused(11, (3,)), unused(18, ()), unused(0, (1,) * 9),
    unused(0, (1 << 16, 1 << 16)), unused(0, (3,), np.zeros(5, np.uint8)), names, about,
], ids=[
    "axis", "negative axis", "scales", "axis of one scale", "zero points", "axis of the weights",
    "1 x 4", "1 x 1 x 1 x 4", "4 x 1", "2 x 2", "rank of the weights", "longer buffer",
    "complex128", "bfloat16", "rank 9", "size", "short data", "names", "others",
])
def test_parts_that_the_runtime_does_not_read(change, tmp_path):
    data = file(change)
    graph = load(data, "net")
    [expected] = micro(data, [X])
    assert np.array_equal(run_graph(graph, [X])[graph.outputs[0]], expected)
    config = Config(rows=2, cols=4, depth=4)
    compile_graph(graph, config).save(tmp_path / "net.weft")
    with load_file(tmp_path / "net.weft").open(GoldenTransport(config)) as session:
        assert np.array_equal(session(X), expected)


def test_weights_of_equal_sizes_have_scales_along_their_own_axis(rng):
    """The runtimes compare the number of scales with the size of the axis, and then forget it."""
    tensors = {
        "x": T((1, 3, 3, 4), scale=0.1, zero=3), "y": T((1, 3, 3, 4), scale=0.3, zero=-2),
        "w": T(data=rng.integers(-127, 128, (4, 1, 1, 4), np.int8), axis=3,
               scale=[0.01, 0.02, 0.03, 0.04]),
    }
    options = "Conv2DOptions", {
        "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1,
    }
    data = build(tensors, [("CONV_2D", ["x", "w"], ["y"], options)], ["x"], ["y"])
    graph, x = load(data, "net"), rng.integers(-128, 128, (1, 3, 3, 4), np.int8)
    [expected] = micro(data, [x])
    assert np.array_equal(run_graph(graph, [x])[graph.outputs[0]], expected)


@pytest.mark.parametrize("name, y", [
    ("LOGISTIC", dict(scale=0.0039, zero=-128)), ("LOGISTIC", dict(scale=0.1, zero=-128)),
    ("TANH", dict(scale=0.0078)), ("TANH", dict(scale=0.1, zero=3)),
])
def test_the_scale_of_a_sigmoid(name, y):
    """TFLite Micro has always 1/256, and 1/128; LiteRT reads it."""
    x = np.arange(256, dtype=np.uint8).view(np.int8).reshape(1, 256)
    tensors = {"x": T(x.shape, scale=0.05, zero=9), "y": T(x.shape, **y)}
    data = build(tensors, [(name, ["x"], ["y"], None, 2)], ["x"], ["y"])
    graph = load(data, "net")
    [expected] = micro(data, [x])
    assert np.array_equal(run_graph(graph, [x])[graph.outputs[0]], expected)
    pytest.importorskip("ai_edge_litert")
    graph = in_mode(graph, "single")
    [[expected]] = litert(data, [[x]])
    assert np.array_equal(run_graph(graph, [x])[graph.outputs[0]], expected)


@pytest.mark.parametrize("name", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
def test_the_scale_of_a_pool(rng, name):
    """Without an activation a pool has no use for it."""
    tensors = {"x": T((1, 4, 4, 2)), "y": T((1, 2, 2, 2))}
    options = "Pool2DOptions", {
        "filterHeight": 2, "filterWidth": 2, "strideH": 2, "strideW": 2,
    }
    data = build(tensors, [(name, ["x"], ["y"], options, 2)], ["x"], ["y"])
    graph, x = load(data, "net"), rng.integers(-128, 128, (1, 4, 4, 2), np.int8)
    [expected] = micro(data, [x])
    assert np.array_equal(run_graph(graph, [x])[graph.outputs[0]], expected)


@pytest.mark.parametrize("old, new", [(0, 99), (99, 0), (99, 3), (3, 99), (-1, 99)])
def test_the_larger_code_of_an_operator_counts(old, new):
    """An old field of a byte and a new field have it, of which one may be absent."""
    def change(model, _):
        code = model.operatorCodes[0]
        code.deprecatedBuiltinCode, code.builtinCode = old, new

    x = np.array([[-128, -5, 0, 77]], np.int8), np.array([[9, 5, -7, -100]], np.int8)
    tensors = {name: T((1, 4), scale=scale) for name, scale in (("a", 1), ("b", 1), ("y", 40))}
    add = "ADD", ["a", "b"], ["y"], ("AddOptions", {})
    data = changed(build(tensors, [add], ["a", "b"], ["y"]), change)
    graph = load(data, "net")
    assert [node.operator for node in graph.nodes] == ["SQUARED_DIFFERENCE"]
    [expected] = micro(data, x)
    assert np.array_equal(run_graph(graph, x)[graph.outputs[0]], expected)


@pytest.mark.parametrize("old, new", [(127, 0), (0, 127), (127, 127)])
def test_rejects_the_code_that_names_no_operator(old, new):
    def change(model, _):
        code = model.operatorCodes[0]
        code.deprecatedBuiltinCode, code.builtinCode = old, new

    with pytest.raises(ModelError, match="neither Weft nor TFLite Micro has this operator"):
        load(file(change), "net")


@pytest.mark.parametrize("number, name", [(0, "x"), (W, "w"), (3, "y")])
def test_rejects_a_tensor_beyond_the_file_by_its_name(number, name):
    """The signature of its shape is too long."""
    def change(model, _):
        tensor = model.subgraphs[0].tensors[number]
        tensor.shapeSignature = [*map(int, tensor.shape)]

    data = bytearray(file(change))
    tensor = tflite.Model.GetRootAs(bytes(data)).Subgraphs(0).Tensors(number)
    start = tensor._tab.Vector(tensor._tab.Offset(18))
    data[start - 4 : start] = (1 << 28).to_bytes(4, "little")
    with pytest.raises(ModelError, match=rf"net: tensor {number} \('{name}'\) must lie inside"):
        load(bytes(data), "net")


@pytest.mark.parametrize("count, words", [(1, "1 tensor has"), (2, "2 tensors have")])
def test_the_note_about_dimensions_of_any_size(count, words):
    def change(model, _):
        for number in range(count):
            model.subgraphs[0].tensors[3 * number].shapeSignature = [-1, 4]

    assert load(file(change), "net").notes[0].startswith(f"{words} dimensions of any size")


@pytest.mark.parametrize("change, message", [
    (unused(11, (3,)), r"tensor 4 \(''\): type must be one of FLOAT32, .*, not COMPLEX128"),
    (unused(0, (1,) * 9), "rank must be in 0..8, not 9"),
    (unused(0, (3,), np.zeros(5, np.uint8)), r"data of shape \(3,\) must have 12 bytes, not 5"),
])
def test_rejects_them_where_an_operator_reads_them(change, message):
    def used(model, s):
        change(model, s)
        model.subgraphs[0].operators[0].inputs = [0, 1, 4]

    with pytest.raises(ModelError, match=message):
        load(file(used), "net")
