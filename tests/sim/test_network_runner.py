"""Networks on the simulated core: results of TensorFlow Lite Micro, all bytes of the memory."""

from dataclasses import replace

import numpy as np
import pytest
from digits import CNN, MLP
from graph_runner import run_graph
from network_core_networks import NetworkBuilder
from network_cores import EARLY, SIMULATED, TWO_ROWS, network_core_config
from network_duel import NetworkDuel
from network_programs import random_inputs
from products import integers
from tflite_files import T, build
from tiers import quick

import weft
from weft.boards.designs import BATCH1_85F, NETWORKS_FAST_85F
from weft.golden.int4 import nearest
from weft.host.emulated import ListTransport
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.runners import GoldenRunner
from weft.models.oracles import answers
from weft.models.target import target_of
from weft.network_core.descriptors import ListJob, ListLoad, LoadTarget, unpack_list

pytest.importorskip("tflite")

LARGE = network_core_config(8, 8, 8, 8, target="ecp5", dsp_cols=4)
FAST = replace(NETWORKS_FAST_85F.config, two_rows=True)


@pytest.mark.parametrize("path", [MLP, CNN], ids=lambda path: path.stem)
def test_digits(path):
    pytest.importorskip("tflite_micro")
    network = weft.load(path)
    program = network.compile(SIMULATED)
    x = random_inputs(program, 2)
    duel = NetworkDuel(SIMULATED)
    with program.open(duel) as session:
        y = session(x)
    assert duel.cycles[-2:] == [program.cycles] * 2
    [[wanted]] = [a.outputs for a in answers("tflm", network, program, x)]
    assert np.array_equal(y.reshape(2, -1), wanted.reshape(2, -1))


def test_the_compiler_lets_jobs_start_early():
    """All but the first one; the golden model of the other tests refuses a wrong span."""
    network = weft.load(CNN)
    early, plain = network.compile(EARLY), network.compile(SIMULATED)
    jobs = [
        job for segment in early.segments for job in unpack_list(segment.run)
        if isinstance(job, ListJob) and not job.softmax
    ]
    assert [job.early for job in jobs] == [0] + [1] * (len(jobs) - 1)
    assert early.cycles < plain.cycles


def test_the_compiler_stores_two_rows_where_it_can():
    """Not with ADD, and not in a map whose rows are odd."""
    rng = np.random.default_rng(5)
    builder = NetworkBuilder(rng, (1, 6, 6, 3))
    x = builder.convolution(0, 8)
    y = builder.add(builder.convolution(x, 8), x)
    builder.convolution(y, 8, kernel=(2, 2), padding=(0, 0, 0, 0))  # 5 x 5 pixels
    graph = builder.graph()
    x = integers(rng, np.int8, 1, 6, 6, 3)
    one = compile_network_core(graph, target_of(replace(TWO_ROWS, two_rows=False)))
    program = compile_network_core(graph, target_of(TWO_ROWS))
    jobs = [
        job for segment in program.segments for job in unpack_list(segment.run)
        if isinstance(job, ListJob)
    ]
    assert [(job.out_width, job.add, job.two_rows) for job in jobs] == [
        (6, 0, 1), (6, 1, 0), (5, 0, 0)
    ]
    assert program.cycles < one.cycles
    duel = NetworkDuel(TWO_ROWS)
    with program.open(duel) as session:
        y = session(x)
        assert session.cycles == program.cycles
    np.testing.assert_array_equal(y, run_graph(graph, [x])[graph.outputs[0]])


def with_int4(node, channels):
    """The node with the weights of int4 next to its own."""
    groups, k, columns = node.weights.shape
    rows = node.weights.reshape(groups, -1, channels, columns).swapaxes(2, 3)
    found = nearest(rows.reshape(-1, channels), 4).reshape(rows.shape).swapaxes(2, 3)
    return replace(node, weights=found.reshape(groups, k, columns))


@pytest.mark.parametrize("b_words", [256, pytest.param(24, marks=pytest.mark.slow)])
def test_weights_of_int4(b_words):
    """Those of the first two layers; with few words, layers are parts whose words are loaded again.
    """
    rng = np.random.default_rng(6)
    builder = NetworkBuilder(rng, (1, 5, 4, 6))
    x = builder.convolution(0, 10, kernel=(2, 3), padding=(1, 0, 1, 1))
    x = builder.convolution(x, 9, kernel=(1, 1), padding=(0, 0, 0, 0))
    builder.dense(builder.convolution(x, 1, groups=9), 7)
    graph = builder.graph()
    nodes = [with_int4(graph.nodes[0], 6), with_int4(graph.nodes[1], 10), *graph.nodes[2:]]
    graph = replace(graph, nodes=nodes)
    x = integers(rng, np.int8, 2, 5, 4, 6)
    chip = replace(EARLY, b_words=b_words)
    program = compile_network_core(graph, target_of(chip))
    plain = compile_network_core(graph, target_of(replace(chip, int4=False)))
    loads = [
        load for part in (*program.setup, *(segment.run for segment in program.segments))
        for load in unpack_list(part) if isinstance(load, ListLoad) and load.target == LoadTarget.B
    ]
    assert {load.packed for load in loads if not load.diagonal} == {0, 1}
    assert not any(load.packed and load.diagonal for load in loads)
    saved = plain.areas["weights"] - program.areas["weights"]
    assert saved > 200 or b_words == 256  # then all stay in B
    duel = NetworkDuel(chip)
    with program.open(duel) as session:
        y = session(x)
        assert session.cycles == program.cycles
    wanted = [run_graph(graph, [row[None]])[graph.outputs[0]] for row in x]
    np.testing.assert_array_equal(y, np.concatenate(wanted))


@pytest.mark.parametrize("config", quick(1, [SIMULATED, EARLY]), ids=["plain", "early"])
def test_several_lists(config):
    """Three lists, a batch of two: the cycles of all lists are the predicted ones."""
    rng = np.random.default_rng(1)
    builder = NetworkBuilder(rng, (1, 5, 5, 3))
    x = builder.convolution(0, 8)
    y = builder.convolution(builder.concatenation(x, builder.convolution(x, 8)), 8)
    y = builder.convolution(builder.softmax(y), 8)
    builder.dense(builder.table(builder.add(builder.convolution(y, 8), x)), 6)
    graph = builder.graph()
    x = integers(rng, np.int8, 2, 5, 5, 3)
    program = compile_network_core(graph, target_of(config), batch=2)
    duel = NetworkDuel(config)
    with program.open(duel) as session:
        y = session(x)
        assert session.cycles == program.cycles
    wanted = [run_graph(graph, [row[None]])[graph.outputs[0]] for row in x]
    np.testing.assert_array_equal(y, np.concatenate(wanted))


@pytest.mark.parametrize("batch", [1, 2])
def test_kernels_that_exceed_the_buffer(batch):
    """The first layer has 288 words of B in 256: all of the network is one list."""
    rng = np.random.default_rng(4)
    builder = NetworkBuilder(rng, (1, 3, 4, 128))
    x = builder.convolution(0, 5, kernel=(3, 3), padding=(1, 0, 0, 1))
    builder.dense(builder.convolution(x, 64), 3)
    graph = builder.graph()
    x = integers(rng, np.int8, batch, 3, 4, 128)
    program = compile_network_core(graph, target_of(SIMULATED), batch=batch)
    assert len(program.segments) == 1 and not program.host
    jobs = [entry for entry in unpack_list(program.segments[0].run) if isinstance(entry, ListJob)]
    assert sum(job.partial for job in jobs) > 5
    duel = NetworkDuel(SIMULATED)
    with program.open(duel) as session:
        y = session(x)
        assert session.cycles == program.cycles
    wanted = [run_graph(graph, [row[None]])[graph.outputs[0]] for row in x]
    np.testing.assert_array_equal(y, np.concatenate(wanted))


def test_products_between_lists():
    """A map outlives them; the cycles of lists and products are the predicted ones."""
    rng = np.random.default_rng(1)
    builder = NetworkBuilder(rng, (1, 5, 5, 3))
    first = builder.convolution(0, 8)
    x = builder.convolution(first, 8)
    builder.on_host()
    builder.dense(builder.add(builder.convolution(x, 8), first), 6)
    graph = builder.graph()
    program = compile_network_core(graph, target_of(SIMULATED))
    assert len(program.segments) == 2 and len(program.products) == 1
    x = integers(rng, np.int8, 2, 5, 5, 3)
    with program.open(NetworkDuel(SIMULATED)) as session:
        y, records = session(x, stats=True)
        assert session.cycles == program.cycles
    [step] = program.products
    assert [r.cycles for r in records if r.step is step] == [step.estimate.cycles]
    wanted = [run_graph(graph, [row[None]])[graph.outputs[0]] for row in x]
    np.testing.assert_array_equal(y, np.concatenate(wanted))


def test_matrix_products():
    """Sums and results; the predicted cycles are the ones of the simulated core."""
    rng = np.random.default_rng(2)
    runners = NetworkDuel(SIMULATED), GoldenRunner(SIMULATED)
    core, golden = (weft.Accelerator(ListTransport(runner)) for runner in runners)
    for m, k, n, arguments in (
        (7, 9, 11, {}), (1, 1, 1, {}), (40, 33, 5, {"scale": 0.003}), (50, 90, 21, {}),
        (50, 90, 21, {"scale": 0.003, "zero_point": 9, "bias": rng.integers(-999, 999, 21)}),
    ):
        a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
        (y, stats), (wanted, predicted) = (
            accelerator.matmul(a, b, record=True, **arguments) for accelerator in (core, golden)
        )
        assert np.array_equal(y, wanted)
        assert arguments or np.array_equal(y, a.astype(int) @ b.astype(int))
        assert stats == predicted
    core.close()


# Cycles from START to the end in which a network must run: 10.5 us at 95.8 MHz for ad01, and 130,
# 320 and 500 us at 105 MHz.
@pytest.mark.slow
@pytest.mark.parametrize("name, config, limit", [
    ("ad01_int8", BATCH1_85F.config, 1_006),
    pytest.param("kws_int8", LARGE, 13_650, marks=pytest.mark.long),
    pytest.param("resnet8_int8", LARGE, 33_600, marks=pytest.mark.long),
    pytest.param("vww_96_int8", LARGE, 52_500, marks=pytest.mark.long),
    pytest.param("vww_96_int8", FAST, 21_700, marks=pytest.mark.long),
])
def test_mlperf_tiny(mlperf_tiny, name, config, limit):
    program = weft.load(mlperf_tiny / f"{name}.tflite").compile(config)
    with np.load(mlperf_tiny / f"{name}.npz") as record:
        x, wanted = record["model_in"][:2], record["model_out_tflm"][:2]
    shape = program.tensors[program.inputs[0]].shape
    duel = NetworkDuel(config)
    with program.open(duel) as session:
        y = session(x.reshape(2, *shape[1:]))
    assert np.array_equal(y.reshape(2, -1), wanted.reshape(2, -1))
    assert duel.cycles[-2:] == [program.cycles] * 2
    assert program.cycles <= limit


def test_int4_constants_of_a_file_are_packed():
    pytest.importorskip("tflite_micro")
    rng = np.random.default_rng(8)
    weights = rng.integers(-8, 8, (6, 20)).astype(np.int8)
    file = build(
        {"x": T((1, 20), scale=0.05, zero=-7), "w": T(dtype="int4", data=weights, scale=0.1),
         "y": T((1, 6), scale=0.25)},
        [("FULLY_CONNECTED", ["x", "w"], ["y"], ("FullyConnectedOptions", {}))], ["x"], ["y"],
    )
    network = weft.load(file, "net")
    program = network.compile(EARLY)
    [load] = [
        entry for part in program.setup for entry in unpack_list(part)
        if isinstance(entry, ListLoad) and entry.target == LoadTarget.B
    ]
    assert load.packed
    x = integers(rng, np.int8, 1, 20)
    with program.open(NetworkDuel(EARLY)) as session:
        y = session(x)
    [[wanted]] = [a.outputs for a in answers("tflm", network, program, x)]
    np.testing.assert_array_equal(y.reshape(-1), wanted.reshape(-1))
