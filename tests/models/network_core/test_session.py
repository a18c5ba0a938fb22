"""Sessions on network cores: errors, repeated loads, times, several results."""

import struct

import numpy as np
import pytest
from graph_runner import run_graph
from network_core_networks import NetworkBuilder
from network_cores import network_core_config
from rejects import rejects

from weft.host.recovery import AcceleratorError
from weft.host.transport import TransportClosed
from weft.models.errors import ModelError
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.runners import GoldenRunner
from weft.models.target import target_of
from weft.network_core.descriptors import ListError, ListReport, join, split

CHIP = network_core_config(3, 4, 4, 2, words=1024, b_words=64, lines=24, read_vectors=2)


class TimedRunner(GoldenRunner):
    """Writes a log: job n takes 10 * n + 5 cycles. The lists in ``fails`` end with an error."""

    fails = ()
    lists = 0

    def run(self, list_address, log_address, *, timeout, beside=None, writes=()):
        self.lists += 1
        if self.lists in self.fails:
            return ListReport(ListError.ABORTED, 1, cycles=7)
        report = super().run(
            list_address, log_address, timeout=timeout, beside=beside, writes=writes
        )
        times = np.cumsum([10 * n + 5 for n in range(report.jobs)])
        first = join(log_address, self.config.banks) * self.config.array.depth
        log = b"".join(struct.pack("<2I", time - 3, time) for time in times)
        self.memory[first : first + len(log)] = np.frombuffer(log, np.uint8)
        return ListReport(report.error, report.jobs, report.result, 100)


@pytest.fixture
def graph():
    builder = NetworkBuilder(np.random.default_rng(1), (1, 5, 5, 3))
    x = builder.convolution(0, 8)
    builder.dense(builder.convolution(x, 8, stride=(2, 2)), 6)
    return builder.graph()


def inputs(count=1):
    return np.random.default_rng(2).integers(-128, 128, (count, 5, 5, 3)).astype(np.int8)


def test_cycles_of_the_layers(graph):
    program = compile_network_core(graph, target_of(CHIP))
    with program.open(TimedRunner(CHIP)) as session:
        seen = []
        _, records = session(inputs(2), stats=True, watch=seen.append)
        assert session.cycles == 100
    assert records == seen
    jobs = [step.jobs for step in program.steps]
    first = np.cumsum([0, *jobs])
    assert [record.cycles for record in records] == [
        sum(10 * n + 5 for n in range(start, stop))
        for start, stop in zip(first, first[1:], strict=False)
    ]


def test_the_log_is_read_for_records_only(graph):
    program = compile_network_core(graph, target_of(CHIP))
    runner, addresses = TimedRunner(CHIP), []
    read = runner.read
    runner.read = lambda address, count: addresses.append(address) or read(address, count)
    log = split(program.log, CHIP.banks)
    with program.open(runner) as session:
        for options in ({}, {"stats": True}, {"watch": lambda record: None}):
            addresses.clear()
            session(inputs(), **options)
            assert (log in addresses) == bool(options)


def test_resident_weights_load_again_after_an_error(graph):
    program, runner = compile_network_core(graph, target_of(CHIP)), TimedRunner(CHIP)
    assert program.setup
    runner.fails = (3,)  # the setup, the first inference, the second inference
    x = inputs()
    expected = run_graph(graph, [x])[graph.outputs[0]]
    text = (
        f"net: the list ended with error ABORTED in job 1 (layer 2 of {len(program.steps)}:"
        f" {', '.join(program.steps[1].operators)}): the list was aborted"
    )
    with program.open(runner) as session:
        np.testing.assert_array_equal(session(x), expected)
        with rejects(AcceleratorError, text):
            session(x)
        runner._buffers.b[...] = 0
        runner._buffers.lines[...] = 0
        np.testing.assert_array_equal(session(x), expected)
        assert runner.lists == 5
        session(x)
        assert runner.lists == 6


def test_refuses_another_core(graph):
    program, other = compile_network_core(graph, target_of(CHIP)), network_core_config(3, 4, 4, 2)
    text = (
        f"the core must be the network core of the program ({CHIP.hash:08x}),"
        f" not {other.hash:08x}"
    )
    with rejects(AcceleratorError, text):
        program.open(GoldenRunner(other))


def test_several_and_large_results():
    """Results that DONE cannot carry are read from the memory."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 9, 9, 3))
    x = builder.convolution(0, 16)
    y = builder.dense(x, 6)
    z = builder.host(y, "RESHAPE", "reshape", (2, 3), shape=(2, 3))
    graph = builder.graph(x, z)
    program = compile_network_core(graph, target_of(network_core_config(3, 4, 4, 2)))
    assert program.segments[0].result_bytes == 0
    values = np.random.default_rng(2).integers(-128, 128, (1, 9, 9, 3)).astype(np.int8)
    expected = run_graph(graph, [values])
    with program.open("golden") as session:
        first, second = session(values)
    np.testing.assert_array_equal(first, expected[x])
    np.testing.assert_array_equal(second, expected[z])


def test_operators_of_the_host_before_and_after():
    builder = NetworkBuilder(np.random.default_rng(1), (1, 6, 6, 3), np.uint8)
    x = builder.host(
        0, "MAX_POOL_2D", "tflite.max_pool", (1, 3, 3, 3), kernel_size=(2, 2), stride=(2, 2),
        padding=(0, 0), output=(3, 3), low=0, high=255,
    )
    y = builder.dense(builder.convolution(x, 5), 300)
    builder.host(y, "TRANSPOSE", "transpose", (300, 1), axes=(1, 0))
    graph = builder.graph()
    values = np.random.default_rng(2).integers(0, 256, (2, 6, 6, 3)).astype(np.uint8)
    program = compile_network_core(graph, target_of(network_core_config(3, 4, 4, 2, lines=200)))
    with program.open("golden") as session:
        found = session(values)
    expected = [run_graph(graph, [row[None]])[graph.outputs[0]] for row in values]
    np.testing.assert_array_equal(found, np.concatenate(expected))


@pytest.fixture(scope="module")
def divided():
    """A network of three lists: a layer, SOFTMAX, two layers with ADD, SOFTMAX, a layer."""
    builder = NetworkBuilder(np.random.default_rng(1), (1, 5, 5, 3))
    x = builder.softmax(builder.convolution(0, 8))
    y = builder.convolution(x, 8)
    builder.dense(builder.softmax(builder.add(builder.convolution(y, 8), x)), 6)
    return builder.graph()


def test_cycles_of_several_lists(divided):
    program = compile_network_core(divided, target_of(CHIP))
    x = inputs(2)
    with program.open(TimedRunner(CHIP)) as session:
        y, records = session(x, stats=True)
        assert session.cycles == 300
    expected = [run_graph(divided, [row[None]])[divided.outputs[0]] for row in x]
    np.testing.assert_array_equal(y, np.concatenate(expected))
    assert [record.step.operators for record in records] == [
        ("CONV_2D",), ("SOFTMAX",), ("CONV_2D",), ("CONV_2D", "ADD"), ("SOFTMAX",),
        ("FULLY_CONNECTED",),
    ]
    starts = [None if record.cycles is None else record.step.first_job for record in records]
    assert starts == [0, None, 0, records[2].step.jobs, None, 0]
    assert records[3].cycles > records[2].cycles > 0
    assert program.cycles == sum(segment.cycles for segment in program.segments)


def test_batches_of_several_lists(divided):
    """The maps of each inference stay on the core from list to list."""
    program, x = compile_network_core(
        divided, target_of(CHIP), batch=2, activations=True
    ), inputs(3)
    seen = []
    with program.open("golden") as session:
        y, records, found = session(x, stats=True, activations=True, watch=seen.append)
    assert seen == records and len(records) == 7
    expected = [run_graph(divided, [row[None]]) for row in x]
    for name, value in {**found, "out6": y}.items():
        number, = divided.nodes[int(name.removeprefix("out"))].outputs
        wanted = np.concatenate([values[number] for values in expected])
        np.testing.assert_array_equal(value, wanted, name)


def test_inputs_of_many_channels():
    """A pixel of more than 255 bytes is written as whole vectors."""
    builder = NetworkBuilder(np.random.default_rng(1), (3, 301))
    builder.dense(0, 9, rows=3)
    graph = builder.graph()
    values = np.random.default_rng(2).integers(-128, 128, (3, 301)).astype(np.int8)
    program = compile_network_core(graph, target_of(network_core_config(3, 4, 4, 2)))
    with program.open("golden") as session:
        np.testing.assert_array_equal(session(values), run_graph(graph, [values])[1])


@pytest.mark.parametrize("runner", ["gold", None, 3])
def test_rejects_a_runner_without_a_core(graph, runner):
    program = compile_network_core(graph, target_of(CHIP))
    with rejects(ModelError, (
        "runner must be 'golden' or have a network core, as"
        f" weft.host.network_driver.NetworkDriver has, not {runner!r}"
    )):
        program.open(runner)


@pytest.mark.parametrize("batch", [0, 65536, 1.5, "2", None])
def test_rejects_a_wrong_batch(graph, batch):
    with rejects(ModelError, f"batch must be an integer in 1..65535, not {batch!r}"):
        compile_network_core(graph, target_of(CHIP), batch=batch)


def test_a_closed_session_runs_nothing(graph):
    """The golden core has no connection, which would refuse it."""
    session = compile_network_core(graph, target_of(CHIP)).open("golden")
    session(inputs())
    session.close()
    with rejects(TransportClosed, "the transport is closed"):
        session(inputs())
