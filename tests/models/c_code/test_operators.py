"""Operators without weights as C: values, and what has no C code."""

import ctypes
from importlib import resources

import numpy as np
import pytest
from c_network import shared_library, write_sources
from graph_runner import run_graph
from graphs import graph_of, table_of, tensor
from products import integers
from rejects import rejects

from weft.config import Config
from weft.ip import Ip
from weft.models.c_code import c_files
from weft.models.compiler import compile_graph
from weft.models.errors import ModelError
from weft.models.ir import Host

CONFIG = Config(rows=2, cols=4, a_words=64, b_words=64)
SUM = {
    "zeros": (-128, 35), "multipliers": (1175423223, 1073741824), "shifts": (-3, 0),
    "left_shift": 20, "multiplier": 1239723019, "shift": -17, "zero": -7, "low": -100, "high": 90,
}
POOL = {"kernel_size": (3, 2), "stride": (2, 2), "padding": (1, 0), "output": (3, 4)}
SOFTMAX = {"multiplier": 1717986918, "left_shift": 23, "least": -248, "dtype": "int8"}
MEAN = {"zeros": (5, -20), "multiplier": 1503238554, "shift": 1}
LITE_SUM = {
    "zeros": (-128, 35), "multipliers": (1175423, -1873741), "shift": 21, "zero": -7, "low": -100,
    "high": 90,
}
LITE_MEAN = {"axes": (1, 2), "shape": (2, 3), "scale": 1 / 70, "zeros": (5, -20)}
LITE_SOFTMAX = {
    "exponentials": np.exp(np.arange(-255, 1) / 16).astype(np.float32), "scale": 1 / 256,
    "zero": -128, "dtype": "int8",
}
# Name: kernel, attributes, shape of each input, shape of the output.
CASES = {
    "add": ("tflite.add", SUM, [(2, 50), (2, 50)], (2, 50)),
    "average": ("tflite.average_pool", POOL | {"low": -90, "high": 127}, [(2, 5, 8, 3)],
                (2, 3, 4, 3)),
    "max": ("tflite.max_pool", POOL | {"low": -128, "high": 100}, [(2, 5, 8, 3)], (2, 3, 4, 3)),
    "mean": ("tflite.mean", MEAN | {"axes": (1, 2), "shape": (2, 3)}, [(2, 5, 7, 3)], (2, 3)),
    "mean of all": ("tflite.mean", MEAN | {"axes": (0, 1), "shape": (1,)}, [(4, 5)], (1,)),
    "softmax": ("tflite.softmax", SOFTMAX, [(6, 11)], (6, 11)),
    "long softmax": ("tflite.softmax", SOFTMAX | {"multiplier": 1 << 30, "left_shift": 1},
                     [(1, 700)], (1, 700)),
    "LiteRT's add": ("litert.add", LITE_SUM, [(2, 50), (2, 50)], (2, 50)),
    "LiteRT's mean": ("litert.sum", LITE_MEAN, [(2, 5, 7, 3)], (2, 3)),
    "LiteRT's softmax": ("litert.softmax", LITE_SOFTMAX, [(6, 11)], (6, 11)),
    "pad": ("pad", {"padding": ((1, 2), (0, 3), (2, 0)), "value": -9}, [(2, 3, 4)], (5, 6, 6)),
    "reshape": ("reshape", {"shape": (3, 8)}, [(4, 6)], (3, 8)),
}


def operator(kernel, attributes, shapes, output, name="HOST", dtype=np.int8):
    """A graph of one operator; its first input is the network's, the others are constants."""
    rng = np.random.default_rng(3)
    tensors = [tensor(shapes[0], dtype)]
    tensors += [tensor(shape, data=integers(rng, np.int8, *shape)) for shape in shapes[1:]]
    tensors.append(tensor(output, dtype))
    node = Host(
        operator=name, name="n", position=(0,), inputs=tuple(range(len(shapes))),
        outputs=(len(shapes),), kernel=kernel, attributes=attributes, reason="no product",
    )
    return graph_of([node], tensors)


def check(folder, graph):
    """Compare the results of the C code, which needs no core, with those of numpy."""
    files = c_files(graph, compile_graph(graph, CONFIG))
    write_sources(folder, Ip(config=CONFIG, bus="axi"), files)
    network = ctypes.CDLL(str(shared_library(folder, [folder / "net.c"], "-O1")))
    rng = np.random.default_rng(4)
    shape = graph.tensors[graph.inputs[0]].shape
    for x in (integers(rng, np.int8, *shape), np.full(shape, -128, np.int8)):
        expected = run_graph(graph, [x])[graph.outputs[0]]
        x, y = np.ascontiguousarray(x), np.zeros(expected.size, np.int8)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (x, y))
        assert network.net_run(None, *pointers) == 0
        np.testing.assert_array_equal(y, expected.ravel())


@pytest.mark.parametrize("name", CASES)
def test_results_equal_the_kernel_in_numpy(tmp_path, name):
    check(tmp_path, operator(*CASES[name]))


def test_a_table_operator(tmp_path):
    tensors = [tensor((3, 100))]
    check(tmp_path, graph_of([table_of(np.random.default_rng(5), 0, tensors)], tensors))


NAMES = "ADD, AVERAGE_POOL_2D, MAX_POOL_2D, MEAN, PAD, RESHAPE, SOFTMAX, table operators"


@pytest.mark.parametrize("graph, reason", [
    (operator("transpose", {"axes": (1, 0)}, [(2, 3)], (3, 2), "TRANSPOSE"),
     f"operator 0 (TRANSPOSE n): no C code: no C kernel for it; those of {NAMES} exist"),
    (operator("tflite.add", SUM, [(2, 3), (1, 3)], (2, 3), "ADD"),
     "operator 0 (ADD n): no C code: operands must have one shape, not (2, 3) and (1, 3)"),
    (operator("tflite.softmax", SOFTMAX, [(1, 4096)], (1, 4096), "SOFTMAX"),
     "operator 0 (SOFTMAX n): no C code: a row must have 1..4095 values, not 4096"),
    (operator("tflite.mean", MEAN | {"axes": (0, 2), "shape": (3,)}, [(2, 3, 4)], (3,), "MEAN"),
     "operator 0 (MEAN n): no C code: the axes must be adjacent, not (0, 2)"),
    (operator("pad", {"padding": ((0, 0),) * 5, "value": 0}, [(1,) * 5], (1,) * 5, "PAD"),
     "operator 0 (PAD n): no C code: x must have at most 4 axes, not 5"),
    (operator("pad", {"padding": ((0, 0),), "value": 0}, [(2,), ()], (2,), "PADV2"),
     "operator 0 (PADV2 n): no C code: the padding value must be a constant"),
    (operator("reshape", {"shape": (2,)}, [(2,)], (2,), "RESHAPE", np.uint8),
     "operator 0 (RESHAPE n): no C code: tensors must be int8, not uint8"),
])
def test_rejects_what_has_no_c_code(graph, reason):
    with rejects(ModelError, f"net: {reason}"):
        c_files(graph, compile_graph(graph, CONFIG))


@pytest.mark.parametrize("call, y", [
    ("net_round_shift(6, 2)", 2), ("net_round_shift(-6, 2)", -2), ("net_round_shift(-5, 2)", -1),
    ("net_round_shift(-7, 0)", -7), ("net_round_shift(INT32_MIN, 31)", -1),
    ("net_round_shift(INT32_MAX, 31)", 1), ("net_round_shift(-(1 << 30), 31)", -1),
    ("net_high_mul(INT32_MIN, INT32_MIN)", 2**31 - 1), ("net_high_mul(-3, 1 << 30)", -1),
    ("net_multiply(-3, 1 << 30, 3)", -12), ("net_multiply(1 << 30, 1 << 30, 2)", 0),
])
def test_fixed_point_arithmetic(arithmetic, call, y):
    """Ties are rounded away from zero, except in the product; shifts to the left wrap."""
    assert arithmetic[call] == y


@pytest.fixture(scope="module")
def arithmetic(tmp_path_factory):
    """Results of the calls in `test_fixed_point_arithmetic`, computed in C."""
    folder = tmp_path_factory.mktemp("arithmetic")
    text = resources.files("weft.models.c_code.files").joinpath("net_arithmetic.h").read_text()
    (folder / "net_arithmetic.h").write_text(text)
    [mark] = test_fixed_point_arithmetic.pytestmark
    calls = [call for call, _ in mark.args[1]]
    (folder / "calls.c").write_text(
        '#include "net_arithmetic.h"\nint32_t result(int n);\n'
        "int32_t result(int n)\n{\n    switch (n) {\n"
        + "".join(f"    case {n}: return {call};\n" for n, call in enumerate(calls))
        + "    default: return 0;\n    }\n}\n"
    )
    library = ctypes.CDLL(str(shared_library(folder, [folder / "calls.c"])))
    return {call: library.result(n) for n, call in enumerate(calls)}
