"""ONNX files on network cores: one list, against onnxruntime, byte for byte."""

import numpy as np
import pytest
from network_cores import ONNX, network_core_config
from onnx_models import Builder, require, run_runtime
from onnx_networks import qdq, qlinear, random_cnn, random_inputs, residual

import weft
from weft.config import Config
from weft.golden import requantize
from weft.models.ir import Host, Tensor
from weft.models.kernels import run
from weft.models.network_core.layers import Refusal
from weft.models.network_core.onnx_nodes import onnx_addition
from weft.models.oracles import answers, compare

WIDE = network_core_config(4, 4, 4, 4, requantize="onnx", multiplier="fip")
PRODUCT = Config(requantize="onnx", activation="table")
CONVERSIONS = {"QuantizeLinear", "DequantizeLinear"}


@pytest.fixture(autouse=True)
def _packages():
    require("onnx", "onnxruntime")


def host_operators(program):
    return {name for step in program.host for name in step.operators}


def differences(network, program, x):
    """Differing values of the only output in onnxruntime: optimized, and node by node."""
    y = program.open("golden")(x)
    found = []
    for answer in answers("ort", network, program, x):
        [difference] = compare(program, [y], answer.outputs)
        assert difference.size == y.size
        found.append(difference)
    return found


FILES = {
    "QDQ": lambda: qdq(*residual(), (3, 12, 10)),
    "int8": lambda: qlinear(np.int8), "uint8": lambda: qlinear(np.uint8),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("activations", [False, True])
def test_a_cnn_is_one_list_and_equals_onnxruntime(kind, activations):
    network = weft.load(FILES[kind](), f"{kind}.onnx")
    program = network.compile(WIDE, activations=activations)
    program.check()
    assert len(program.segments) == 1 and host_operators(program) <= CONVERSIONS
    optimized, plain = differences(network, program, random_inputs(program))
    assert plain.different == 0 and optimized.is_allowed
    assert kind == "QDQ" or optimized.different == 0
    assert program.exactness.claim.startswith("equal to onnxruntime in mode onnx")


def test_averages_between_conversions_may_differ_next_to_ties():
    network = weft.load(qdq(*residual(average=True), (3, 12, 10)), "net.onnx")
    program = network.compile(WIDE)
    assert len(program.segments) == 1 and host_operators(program) <= CONVERSIONS
    assert "float32 results of AveragePool are close" in program.exactness.claim
    assert all(found.is_allowed for found in differences(network, program, random_inputs(program)))


@pytest.mark.parametrize("seed", range(6))
def test_random_cnns_equal_the_product_core(seed):
    """Other sizes of cores, and batches; with ``activations`` all tensors are compared."""
    b, y, shape = random_cnn(seed)
    network = weft.load(qdq(b, y, shape), "net.onnx")
    core = [WIDE, network_core_config(
        1, 8, 4, 4, requantize="onnx", words=8192, multiplier="plain"
    ), network_core_config(3, 2, 8, 2, requantize="onnx", words=8192, read_vectors=2)][seed % 3]
    program = network.compile(core, activations=True)
    x = random_inputs(program)
    found, outputs = program.open("golden")(x, activations=True)
    expected = network.compile(PRODUCT).open("golden")
    wanted, others = expected(x, activations=True)
    np.testing.assert_array_equal(found, wanted)
    compared = 0
    for number in outputs.keys() & others.keys():
        if outputs[number].dtype != others[number].dtype:
            continue  # the product core adds floats, and converts their sum afterwards
        np.testing.assert_array_equal(outputs[number], others[number], str(number))
        compared += 1
    assert compared > 2
    batches = network.compile(core, batch=2).open("golden")(x)
    np.testing.assert_array_equal(batches, wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_on_a_simulated_core(dtype):
    from weft.sim.network_core import SimulatedRunner

    program = weft.load(qlinear(dtype), "net.onnx").compile(ONNX)
    x = random_inputs(program, count=1)
    expected = program.open("golden")(x)
    with program.open(SimulatedRunner(ONNX)) as session:
        np.testing.assert_array_equal(session(x), expected)
        assert session.cycles == program.cycles


# The ADD table.

def added(table, x, y):
    """The lanes: the golden requantization of the sum of two words."""
    total = (table.table[0][x & 255].astype(np.int64) + table.table[1][y & 255]).astype(np.int32)
    return requantize(
        total, scale=np.uint32(table.multiplier).view(np.float32), mode="onnx",
        zero_point=table.zero, low=table.low, high=table.high,
    ).astype(int)


def addition_of(scales, zeros, dtype, own):
    """The table of a QLinearAdd, and its results for all pairs of bytes: [added, own]."""
    constants = [np.float32(scales[0]), dtype(zeros[0]), np.float32(scales[1]), dtype(zeros[1]),
                 np.float32(scales[2]), dtype(zeros[2])]
    of_bytes = np.arange(256, dtype=np.uint8).view(dtype)
    a, b = np.tile(of_bytes[:, None], 256), np.tile(of_bytes, (256, 1))
    arrays = [np.asarray(c) for c in constants]
    [results] = run("onnx.qlinear_add", [a, *arrays[:2], b, *arrays[2:]], {})
    tensors = [Tensor(name, (1, 2, 2, 4), np.dtype(dtype)) for name in "aby"]
    node = Host(
        operator="QLinearAdd", name="add", position=(0,), inputs=(0, 1), outputs=(2,),
        kernel="onnx.byte_addition", reason="", attributes={
            "scales": constants[::2], "zeros": zeros, "results": results.astype(np.int64),
        },
    )
    return onnx_addition(node, own, tensors), results if own == 1 else results.T


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_all_pairs_of_bytes_are_exact(dtype):
    rng = np.random.default_rng(3)
    half = 128 if dtype == np.uint8 else 0
    bytes_of = np.arange(256, dtype=np.uint8).view(dtype).astype(int) - half
    x, y = np.broadcast_arrays(bytes_of[:, None], bytes_of[None, :])
    limits = np.iinfo(dtype)
    exact = 0
    ties = [(0.5, 0.5, 1), (0.25, 0.5, 1), (1, 1, 2), (0.3, 0.3, 0.6), (1, 1, 1), (3e-5, 7, 8)]
    for number in range(24):
        scales = ties[number] if number < len(ties) else rng.uniform(0.01, 0.1, 3)
        zeros = [int(z) for z in rng.integers(limits.min, limits.max + 1, 3)]
        try:
            table, results = addition_of(scales, zeros, dtype, number % 2)
        except Refusal:
            continue
        np.testing.assert_array_equal(added(table, x, y) + half, results.astype(int))
        exact += 1
    assert exact >= 23


def test_a_function_that_is_no_sum_has_no_table():
    tensors = [Tensor(name, (1, 2, 2, 4), np.dtype(np.int8)) for name in "aby"]
    values = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
    node = Host(
        operator="Mul", name="mul", position=(0,), inputs=(0, 1), outputs=(2,), reason="",
        kernel="onnx.byte_addition", attributes={
            "scales": np.float32([1, 1, 1]), "zeros": [0, 0, 0],
            "results": np.clip(values[:, None] * values // 100, -128, 127),
        },
    )
    with pytest.raises(Refusal, match="^no table gives all its results in mode onnx$"):
        onnx_addition(node, 0, tensors)


# Which operators become one.

def quantized(b, x, scale, zero=0):
    """``x`` as a tensor of int8, and back as float32."""
    y = b.node("QuantizeLinear", x, np.float32(scale), np.int8(zero))
    return y, b.node("DequantizeLinear", y, np.float32(scale), np.int8(zero))


def layer(b, x, channels, size=4, scale=0.04):
    """A convolution of 1 x 1 between conversions: its result as float32."""
    w = b.node(
        "DequantizeLinear", b.rng.integers(-127, 128, (channels, size, 1, 1)).astype(np.int8),
        np.float32(0.01), np.int8(0),
    )
    return quantized(b, b.node("Conv", x, w), scale, 3)[1]


def compiled(b, y):
    network = weft.load(b.bytes(y), "net.onnx")
    program = network.compile(WIDE)
    return network, program, random_inputs(program)


def test_a_conversion_that_the_host_reads_too():
    """The sum is a layer, and so is the conversion a step of the host: a MaxPool reads it."""
    b = Builder()
    x = quantized(b, b.input("x", [1, 4, 5, 5]), 0.03)[1]
    y, z = layer(b, x, 4), layer(b, x, 4)
    _, total = quantized(b, b.node("Relu", b.node("Add", y, z)), 0.05, -128)
    _, largest = quantized(b, b.node("MaxPool", b.node("Exp", y), kernel_shape=[5, 5]), 0.1)
    y = b.node("Add", b.node("GlobalMaxPool", total), largest)
    network, program, x = compiled(b, y)
    assert ("Conv", "Add", "Relu") in [step.operators for step in program.layers] or any(
        "Add" in step.operators for step in program.layers
    )
    found = program.open("golden")(x)
    [wanted] = run_runtime(network.data, [x[:1]])
    np.testing.assert_allclose(found[:1], wanted, rtol=1e-5)
    assert "Exp" in host_operators(program)


def test_ties_of_a_sum_between_conversions():
    """The zero point is added after the rounding to even, unlike in QLinearAdd."""
    b = Builder()
    x = quantized(b, b.input("x", [1, 4, 5, 5]), 0.03)[1]
    y, z = (layer(b, x, 4, scale=1 / 32) for _ in range(2))
    network, program, x = compiled(b, quantized(b, b.node("Add", y, z), 1 / 16, 3)[1])
    assert "Add" not in host_operators(program)
    assert differences(network, program, x)[1].different == 0


def test_the_host_computes_a_shared_conversion_once():
    b = Builder()
    y = layer(b, quantized(b, b.input("x", [1, 4, 5, 5]), 0.03)[1], 4)
    kinds = "Exp", "Tanh", "Abs"
    x, y, z = (
        quantized(b, b.node("MaxPool", b.node(kind, y), kernel_shape=[2, 2]), 0.05)[1]
        for kind in kinds
    )
    sums = [quantized(b, b.node("Add", x, other), 0.09)[1] for other in (y, z)]
    network, program, x = compiled(b, b.node("Sub", *sums))
    outputs = [number for step in program.host for number in step.outputs]
    assert sum("Add" in step.operators for step in program.host) == 2
    assert len(outputs) == len({*outputs})
    assert differences(network, program, x)[1].is_allowed


def test_a_sum_of_a_tensor_with_itself_and_a_swish_are_tables():
    b = Builder()
    x = quantized(b, b.input("x", [1, 4, 5, 3]), 0.03)[1]
    x = layer(b, x, 8)
    y = quantized(b, b.node("Sigmoid", x), 1 / 256, -128)[1]
    y = quantized(b, b.node("Mul", x, y), 0.04, -100)[1]
    y = quantized(b, b.node("Add", y, y), 0.06, 7)[1]
    network, program, x = compiled(b, layer(b, y, 4, size=8))
    assert len(program.segments) == 1 and host_operators(program) <= CONVERSIONS
    assert differences(network, program, x)[1].different == 0


@pytest.mark.parametrize("form", ["QDQ", "QLinear"])
@pytest.mark.parametrize("channels, lists", [((4, 8, 4), 1), ((4, 6, 4), 2)])
def test_a_concatenation_converts_its_parts(form, channels, lists):
    """Parts begin at multiples of 4 channels, or the host joins them."""
    b = Builder()
    x = quantized(b, b.input("x", [1, 4, 5, 3]), 0.03)[1]
    scales = 0.04, 0.05, 0.06
    parts = [layer(b, x, n, scale=s) for n, s in zip(channels, scales, strict=True)]
    if form == "QDQ":
        y = quantized(b, b.node("Concat", *parts, axis=1), 0.05, -9)[1]
    else:
        ends = [(np.float32(s), np.int8(3)) for s in scales]
        taken = (entry for part, end in zip(parts, ends, strict=True) for entry in (
            next(n.input[0] for n in b.nodes if n.output[0] == part), *end
        ))
        end = np.float32(0.05), np.int8(-9)
        y = b.node("QLinearConcat", *end, *taken, axis=1, domain="com.microsoft")
        y = b.node("DequantizeLinear", y, *end)
    network, program, x = compiled(b, layer(b, y, 4, size=sum(channels)))
    assert len(program.segments) == lists
    assert bool(host_operators(program) & {"Concat", "QLinearConcat"}) == (lists == 2)
    converts = [step for step in program.layers if step.operators[-1].endswith("Concat")]
    assert len(converts) == (3 if lists == 1 else 0)
    expected = network.compile(PRODUCT).open("golden")(x)
    np.testing.assert_array_equal(program.open("golden")(x), expected)
    assert differences(network, program, x)[1].is_allowed


def test_windows_of_averages():
    """Padding that counts is the zero point; padding that does not count is for the host."""
    for counts, where in ((1, "core"), (0, "host")):
        b = Builder(opset=19)
        x = quantized(b, b.input("x", [1, 4, 6, 7]), 0.03, 9)[1]
        y = b.node("AveragePool", layer(b, x, 8), kernel_shape=[3, 2], strides=[2, 1],
                   pads=[1, 0, 1, 1], count_include_pad=counts)
        network, program, x = compiled(b, quantized(b, y, 0.03, -4)[1])
        assert ("AveragePool" in host_operators(program)) == (where == "host")
        assert all(found.is_allowed for found in differences(network, program, x))


U8 = np.uint8


class Bytes(Builder):
    """Operators between DequantizeLinear and QuantizeLinear of uint8."""

    def quantized(self, y, scale=0.1):
        return self.node("QuantizeLinear", y, np.float32(scale), U8(9))

    def values(self, x, scale=0.1):
        return self.node("DequantizeLinear", x, np.float32(scale), U8(9))

    def product(self, x, columns, size):
        weights = self.rng.integers(-100, 100, (size, columns)).astype(np.int8)
        w = self.node("DequantizeLinear", weights, np.float32(0.004), np.int8(0))
        return self.quantized(self.node("MatMul", self.values(x), w))


def _equal(b, y, shape):
    """The core computes all of a file, to the bytes of onnxruntime, node by node."""
    network = weft.load(b.bytes(y, dtype=U8), "net.onnx")
    program = network.compile(WIDE)
    program.check()
    assert not program.host and len(program.segments) == 1
    x = np.random.default_rng(1).integers(0, 256, shape).astype(U8)
    _, plain = differences(network, program, x)
    assert plain.is_allowed
    return program


def test_a_function_that_a_sum_needs_and_a_table_has():
    """``x + f(x)`` is one table; the second sum reads f(x) itself."""
    b = Bytes()
    x = b.product(b.input("x", [1, 6], U8), 5, 6)
    function = b.quantized(b.node("LeakyRelu", b.values(x), alpha=0.2))
    first = b.quantized(b.node("Add", b.values(x), b.values(function)))
    y = b.quantized(b.node("Add", b.values(first), b.values(function)))
    program = _equal(b, y, (1, 6))
    assert [layer.operators for layer in program.layers].count(("MatMul",)) == 1


@pytest.mark.parametrize("shape", [(0, 6, 2, 1), (0, 3, 4, 1), (0, 2, 2, 3)])
def test_an_average_of_a_map_of_other_channels(shape):
    """Reshape gives the values of a map other channels, and an average adds those of each."""
    b = Bytes(2)
    x = b.quantized(b.node("Clip", b.values(b.input("x", [1, 2, 3, 2], U8)), np.float32(-.5),
                           np.float32(9)))
    x = b.node("Reshape", x, np.int64(shape))
    _equal(b, b.quantized(b.node("GlobalAveragePool", b.values(x))), (1, 2, 3, 2))
