"""C code of whole networks: results, names, memory, and compilers' warnings."""

import dataclasses
import re
import subprocess

import numpy as np
import pytest
from c_network import LoadedNetwork, shared_library, write_sources
from digits import CNN
from graph_runner import run_graph
from graphs import chain, fully_connected, graph_of, tensor
from lstm_files import lstm as recurrent_file
from rejects import rejects
from tflite_files import T, build, micro
from tiers import quick

import weft
from weft.config import Config
from weft.ip import Ip
from weft.kit.files.weft_driver import compiler
from weft.models.c_code import c_files
from weft.models.compiler import compile_graph
from weft.models.errors import ModelError
from weft.models.loading import NeuralNetwork
from weft.models.tflite import load as load_tflite

CONFIG = Config(rows=2, cols=4, a_words=256, b_words=256)
LARGE = Config(rows=8, cols=8, depth=8, lanes=2, jobs=4, activation="none", a_words=512,
               b_words=512)


def loaded(folder, network: NeuralNetwork, bus, config=CONFIG):
    program = network.compile(config)
    files = c_files(network.graph, program)
    shape = program.tensors[program.inputs[0]].shape
    return LoadedNetwork(folder, Ip(config=config, bus=bus), network.name, files), shape


@pytest.mark.parametrize("bus", quick(2, ["axi", "dma", "stream"]))
def test_digits_equal_tflite_micro(tmp_path, bus):
    pytest.importorskip("tflite")
    network, shape = loaded(tmp_path, weft.load(CNN), bus)
    rng = np.random.default_rng(1)
    for _ in range(3):
        x = rng.integers(-128, 128, shape, np.int8)
        error, y = network(x, 10)
        [expected] = micro(CNN.read_bytes(), [x])
        assert error == 0
        np.testing.assert_array_equal(y, expected.ravel())


def test_a_network_without_dead_channels(tmp_path):
    rng = np.random.default_rng(1)
    tensors = [tensor((1, 9), zero=3)]
    nodes = [fully_connected(rng, n, tensors, size, position=n) for n, size in enumerate((8, 5))]
    nodes[0].weights[:, :, 2], nodes[1].weights[:, 6] = 0, 0
    graph = graph_of(nodes, tensors)
    network, shape = loaded(tmp_path, NeuralNetwork(graph, b""), "axi")
    x = rng.integers(-128, 128, shape, np.int8)
    error, y = network(x, 5)
    assert error == 0 and compile_graph(graph, CONFIG).left_out.channels == 2
    np.testing.assert_array_equal(y, run_graph(graph, [x])[2].ravel())


@pytest.mark.slow
@pytest.mark.parametrize("name, bus", [
    ("kws_int8", "axi"), ("kws_int8", "dma"), ("resnet8_int8", "dma"), ("vww_96_int8", "dma"),
    ("ad01_int8", "axi"),
])
def test_networks_equal_tflite_micro(tmp_path, mlperf_tiny, name, bus):
    pytest.importorskip("tflite")
    network, shape = loaded(tmp_path, weft.load(mlperf_tiny / f"{name}.tflite"), bus, LARGE)
    record = np.load(mlperf_tiny / f"{name}.npz")
    for x, expected in zip(record["model_in"][:2], record["model_out_tflm"], strict=False):
        error, y = network(x.reshape(shape), expected.size)
        assert error == 0
        np.testing.assert_array_equal(y, expected.ravel())


def files_of(graph, **options):
    return {
        name: data.decode()
        for name, data in c_files(graph, compile_graph(graph, CONFIG), **options).items()
    }


FREESTANDING = ["-ffreestanding", "-fno-builtin", "-nostdlib", "-Wl,-z,defs"]


@pytest.fixture
def digits(request, tmp_path):
    """A folder with the C code of the digits network, and the driver of a bus."""
    pytest.importorskip("tflite")
    network = weft.load(CNN)
    files = c_files(network.graph, network.compile(CONFIG))
    write_sources(tmp_path, Ip(config=CONFIG, bus=request.param), files)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("digits", ["axi", "dma"], indirect=True)
@pytest.mark.parametrize("level", quick(1, ["-O3", "-O0"]))
def test_needs_no_library_function(digits, level):
    shared_library(digits, digits.glob("*.c"), *FREESTANDING, level)


@pytest.mark.parametrize("digits", ["axi", "dma"], indirect=True)
def test_is_clean_on_32_bits(digits):
    flags = ["-m32", "-fsyntax-only"]
    probe = [*compiler(), *FREESTANDING, *flags, "-x", "c", "/dev/null"]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("this compiler has no 32-bit target")
    shared_library(digits, [digits / "net.c"], *FREESTANDING, *flags)


def test_a_driver_of_another_config_does_not_compile(tmp_path):
    graph = chain(np.random.default_rng(1))
    other = Ip(config=Config(rows=2, cols=4, a_words=64, b_words=64), bus="axi")
    write_sources(tmp_path, other, c_files(graph, compile_graph(graph, CONFIG)))
    with pytest.raises(AssertionError, match="was compiled for another Config than the driver"):
        shared_library(tmp_path, [tmp_path / "net.c"], "-fsyntax-only")


@pytest.mark.parametrize("name, identifier", [
    ("weft", "weft"), ("a b*/c\\", "a_b_c"), ("2x", "net_2x"), ("stdint", "stdint"),
])
def test_any_name_gives_valid_c(tmp_path, name, identifier):
    graph = dataclasses.replace(chain(np.random.default_rng(1)), name=name)
    files = c_files(graph, compile_graph(graph, CONFIG), "mm")
    assert f"int mm_{identifier}_run(mm_core *core" in files["net.h"].decode()
    write_sources(tmp_path, Ip(config=CONFIG, bus="axi", prefix="mm"), files)
    shared_library(tmp_path, [tmp_path / "net.c"], "-fsyntax-only")


def test_the_header_has_the_bytes_of_all_static_memory():
    files = files_of(chain(np.random.default_rng(1), (20, 30, 25, 10)))
    header = files["net.h"]
    found = {key: int(value) for key, value in re.findall(r"NET_(\w+)_BYTES = (\d+)", header)}
    assert (found["INPUT"], found["OUTPUT"]) == (20, 10)
    # Results of 30 bytes at 0 and of 25 at 32, each to a multiple of 8; no block of A.
    assert "static int8_t arena[64] " in files["net.c"]
    assert "static int8_t rows[1] " in files["net.c"]
    assert found["RAM"] == 65
    # Weights, and 16 bytes of parameters for each column.
    assert found["CONSTANT"] == 20 * 30 + 30 * 25 + 25 * 10 + 16 * (30 + 25 + 10)


def test_all_files_have_a_licence_and_short_lines():
    for name, text in files_of(chain(np.random.default_rng(1))).items():
        assert text.startswith("/* SPDX-License-Identifier: BSD-2-Clause */\n"), name
        assert max(map(len, text.splitlines())) <= 100, name


def test_rejects_two_outputs():
    rng = np.random.default_rng(1)
    tensors = [tensor((1, 8))]
    nodes = [fully_connected(rng, 0, tensors, 4, position=n) for n in range(2)]
    graph = graph_of(nodes, tensors, outputs=(1, 2))
    with rejects(ModelError, "net: C code needs one output, the network has 2"):
        files_of(graph)


STATE = (
    "no C code: C code has no operators with a state, such as recurrent layers; a program file runs"
    " them from Python: weft run {}.weft --on PORT"
)


@pytest.mark.parametrize("kind, cell", [("int8", 2**-11), ("int16", 2**-11), ("float32", None)])
def test_rejects_a_recurrent_layer(kind, cell):
    zero = dict(zero=0, x_zero=0) if kind == "int16" else {}
    graph = load_tflite(recurrent_file(np.random.default_rng(1), 1, 5, kind=kind, cell=cell,
                                       **zero), "lstm")
    label = "lstm: operator 0 (UNIDIRECTIONAL_SEQUENCE_LSTM y): "
    with rejects(ModelError, label + STATE.format("lstm")):
        files_of(graph)


def test_rejects_a_filter_in_time():
    rng = np.random.default_rng(1)
    tensors = {
        "x": T((1, 6), scale=0.05), "y": T((1, 4), scale=0.02),
        "f": T(data=rng.integers(-128, 128, (4, 6)).astype(np.int8), scale=0.01),
        "t": T(data=rng.integers(-300, 300, (4, 4)).astype(np.int16), scale=0.001),
        "s": T((1, 16), "int16", scale=0.001, variable=True),
    }
    options = "SVDFOptions", {"rank": 1, "fusedActivationFunction": 1}
    operator = ("SVDF", ["x", "f", "t", None, "s"], ["y"], options)
    graph = load_tflite(build(tensors, [operator], ["x"], ["y"]), "net")
    with rejects(ModelError, "net: operator 0 (SVDF y): " + STATE.format("net")):
        files_of(graph)


def test_rejects_an_output_that_is_the_input():
    graph = dataclasses.replace(chain(np.random.default_rng(1)), outputs=(0,))
    with rejects(ModelError, "net: no operator computes the output: no C code"):
        files_of(graph)
