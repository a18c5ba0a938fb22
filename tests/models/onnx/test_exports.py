"""Small graphs as exporters write them, in old and new operator sets, against onnxruntime.

Each is compiled and run on the golden model, and compared within the limits that the first line of
the program promises.
"""

import numpy as np
import pytest
from onnx_models import Builder

import weft
from weft.config import Config
from weft.host.emulated import GoldenTransport
from weft.models.oracles import answers, compare

F32, I64, U8 = np.float32, np.int64, np.uint8
CONFIG = Config(rows=4, cols=4, depth=4, requantize="onnx")
SETS = (11, 13, 17, 18, 21)
MICROSOFT = {"domain": "com.microsoft"}
pytestmark = pytest.mark.usefixtures("onnxruntime")


def with_axes(b, kind, x, axes, since, **attributes):
    """Axes are an attribute of old operators, and an input of new ones."""
    if b.opset >= since:
        return b.node(kind, x, I64(axes), **attributes)
    return b.node(kind, x, axes=axes, **attributes)


def resize(b, x, sizes=False, **attributes):
    last = I64([1, 4, 7, 4]) if sizes else F32([1, 1, 2, 1.5])
    absent = "" if b.opset >= 13 else F32([])
    return b.node("Resize", x, absent, *([absent] if sizes else []), last, **attributes)


def split(b, x, last=False):
    if b.opset >= 18:
        parts = b.node("Split", x, outputs=2, axis=-1, num_outputs=2)
    elif b.opset >= 13:
        parts = b.node("Split", x, I64([2, 3]), outputs=2, axis=-1)
    else:
        parts = b.node("Split", x, outputs=2, axis=-1, split=[2, 3])
    return b.node("Concat", *parts[::-1], axis=-1)


def positions(b, x):
    """``x * torch.arange(x.shape[-1])``"""
    size = b.node("Gather", b.node("Shape", x), I64(3), axis=0)
    places = b.node("Range", I64(0), size, I64(1))
    return b.node("Mul", x, b.node("Cast", places, to=1))


def filled(b, x):
    """``x + torch.full_like(x, 0.25)``"""
    import onnx

    value = onnx.numpy_helper.from_array(F32([0.25]))
    return b.node("Add", x, b.node("ConstantOfShape", b.node("Shape", x), value=value))


def attention(b, x):
    rows = b.node("Reshape", x, I64([4, 6, 5]))
    rows = b.node("MatMul", rows, b.weights(5, 8))
    return b.node("Attention", rows, b.weights(8, 24), b.weights(24), num_heads=2, **MICROSOFT)


def masked(b, x):
    mask = b.node("Not", b.node("Greater", x, F32(0.1)))
    mask = b.node("Or", mask, b.node("Less", x, F32(-0.5)))
    return b.node("Where", mask, x, F32([2]))


# Name: since which operator set, and a function of the builder and x [1, 4, 6, 5].
GRAPHS = {
    "Reshape of -1": (11, lambda b, x: b.node("Reshape", x, I64([0, -1]))),
    "Reshape of 0": (11, lambda b, x: b.node("Reshape", x, I64([0, 0, -1]))),
    "Flatten of -1": (11, lambda b, x: b.node("Flatten", x, axis=-1)),
    "Unsqueeze": (11, lambda b, x: with_axes(b, "Unsqueeze", x, [-1], 13)),
    "Squeeze": (11, lambda b, x: with_axes(b, "Squeeze", x, [-4], 13)),
    "Slice back": (11, lambda b, x: b.node(
        "Slice", x, I64([-1]), I64([-(1 << 62)]), I64([-1]), I64([-2]))),
    "Slice of the end": (11, lambda b, x: b.node(
        "Slice", x, I64([-2]), I64([1 << 62]), I64([2]))),
    **{f"Pad {mode}": (11, lambda b, x, mode=mode: b.node(
        "Pad", x, I64([0, 0, 1, 2, 0, 0, 2, 1]), mode=mode)) for mode in ("reflect", "edge")},
    "Pad constant": (11, lambda b, x: b.node(
        "Pad", x, I64([0, 0, 1, -1, 0, 0, 2, 1]), F32(0.7), mode="constant")),
    **{f"Resize {mode} {rule}": (11, lambda b, x, mode=mode, rule=rule: resize(
        b, x, rule == "align_corners", mode=mode, coordinate_transformation_mode=rule))
       for mode in ("nearest", "linear")
       for rule in ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel")},
    "Clip": (11, lambda b, x: b.node("Clip", x, F32(-0.3), F32(0.6))),
    "Clip of one": (11, lambda b, x: b.node("Clip", x, "", F32(0.6))),
    "ReduceMean": (11, lambda b, x: with_axes(b, "ReduceMean", x, [-1, 2], 18, keepdims=0)),
    "ReduceSum": (11, lambda b, x: with_axes(b, "ReduceSum", x, [1], 13)),
    "ReduceL2": (11, lambda b, x: with_axes(b, "ReduceL2", x, [-1], 18)),
    "ReduceMax of all": (11, lambda b, x: b.node("ReduceMax", x, keepdims=0)),
    "Split": (11, split),
    "LayerNormalization": (17, lambda b, x: b.node("LayerNormalization", x, b.weights(5))),
    "GroupNormalization": (21, lambda b, x: b.node(
        "GroupNormalization", x, b.weights(4), b.weights(4), num_groups=2)),
    "InstanceNormalization": (11, lambda b, x: b.node(
        "InstanceNormalization", x, b.weights(4), b.weights(4))),
    "Gelu": (11, lambda b, x: b.node("Gelu", x, **({} if b.opset >= 20 else MICROSOFT))),
    "FastGelu": (11, lambda b, x: b.node("FastGelu", x, **MICROSOFT)),
    "Attention": (11, attention),
    "Where": (11, masked),
    "Expand": (11, lambda b, x: b.node("Expand", x, I64([3, 1, 1, 1, 1]))),
    "Tile": (11, lambda b, x: b.node("Tile", x, I64([1, 1, 1, 2]))),
    "ConstantOfShape": (11, filled),
    "Range": (11, positions),
    "Trilu": (14, lambda b, x: b.node("Trilu", x, I64(-1), upper=0)),
    "Einsum of one": (12, lambda b, x: b.node("Einsum", x, equation="abij->abji")),
    "Einsum of two": (12, lambda b, x: b.node("Einsum", x, b.weights(5, 3),
                                              equation="abij,jk->abik")),
    "CumSum": (11, lambda b, x: b.node("CumSum", x, I64(-1), reverse=1)),
    "TopK": (11, lambda b, x: b.node("TopK", x, I64([2]), outputs=2)[0]),
    "GatherElements": (11, lambda b, x: b.node("GatherElements", x, np.ones((1, 4, 2, 5), I64),
                                               axis=2)),
    "DepthToSpace": (11, lambda b, x: b.node("DepthToSpace", x, blocksize=2, mode="CRD")),
    "Cast": (11, lambda b, x: b.node("Cast", b.node("Cast", x, to=7), to=1)),
    **{f"{kind} up": (11, lambda b, x, kind=kind: b.node(
        kind, x, kernel_shape=[2, 2], strides=[2, 3], pads=[1, 1, 1, 1], ceil_mode=1))
       for kind in ("MaxPool", "AveragePool")},
    "Conv": (11, lambda b, x: b.node("HardSigmoid", b.node("Conv", x, b.weights(6, 4, 3, 3)))),
    "MatMul of integers": (11, lambda b, x: b.node(
        "DynamicQuantizeMatMul", x, b.rng.integers(-99, 99, (5, 3)).astype(np.int8), F32(0.01),
        **MICROSOFT)),
}


@pytest.mark.parametrize("opset", SETS)
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_of_exporters(name, opset):
    since, graph = GRAPHS[name]
    if opset < since:
        pytest.skip("the operator is newer")
    b = Builder(seed=240, opset=opset)
    y = graph(b, b.node("Add", b.input("x", [1, 4, 6, 5]), F32(0.01)))
    network = weft.load(b.bytes(y), "net")
    program = network.compile(CONFIG)
    x = b.rng.normal(size=(1, 4, 6, 5)).astype(F32)
    with program.open(GoldenTransport(CONFIG)) as session:
        outputs = [session(x)]
    ways = [compare(program, outputs, answer.outputs)
            for answer in answers("ort", network, program, x)]
    assert any(all(d.is_allowed for d in way) for way in ways), (program.exactness.claim, ways)


def test_products_of_floats_in_onnxruntime_are_close():
    """Alone, an operator adds in another order than in its file."""
    b = Builder(seed=241)
    program = weft.load(b.bytes(attention(b, b.input("x", [1, 4, 6, 5])))).compile(CONFIG)
    step = program.steps[-1]
    assert step.macs == 4 * 6 * (8 * 24 + 6 * 16) and min(program.exactness.relative) > 0
