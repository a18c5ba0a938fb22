"""A simulated core with a program memory: bytes, cycles, errors of the memory, aborts."""

import numpy as np
import pytest
from digits import CNN
from graph_runner import run_graph
from network_core_networks import NetworkBuilder
from network_cores import PROGRAM, PROGRAM_ROW, SIMULATED
from network_programs import random_inputs
from products import integers
from tiers import tiers

import weft
from weft.host.emulated import ListTransport
from weft.host.recovery import AcceleratorError
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.prediction import predict_run
from weft.models.network_core.runners import GoldenRunner
from weft.models.target import target_of
from weft.network_core.cycles import ProgramTiming
from weft.network_core.descriptors import NetworkState
from weft.sim.network_core import AxiTiming, SimulatedRunner

pytest.importorskip("tflite")


@pytest.fixture(scope="module", params=tiers(
    {"2x2x4": PROGRAM, "1x4x4": PROGRAM_ROW}, "2x2x4"
))
def config(request):
    return request.param


@pytest.fixture(scope="module")
def program(config):
    return weft.load(CNN).compile(config)


@pytest.fixture(scope="module")
def runner(config):
    runner = SimulatedRunner(config)
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def case(config, program):
    """Inputs, and the results of the golden model."""
    x = random_inputs(program, 2)
    with program.open(GoldenRunner(config)) as session:
        return x, session(x)


@pytest.fixture(autouse=True)
def good_memory(runner):
    runner.set_timing(AxiTiming())


@pytest.mark.parametrize("latency, period", [(1, 256), (33, 256), (70, 600)])
def test_bytes_and_cycles(config, runner, program, case, latency, period):
    x, wanted = case
    runner.set_timing(AxiTiming(latency, period))
    session = program.open(runner)
    assert np.array_equal(session(x), wanted)
    [segment] = program.segments
    timing = ProgramTiming(latency, period)
    predicted = predict_run(config, segment.run, segment.run_first, program.log, timing)
    assert session.cycles == predicted.cycles


@pytest.fixture
def default_timing(runner):
    """The one that predictions of programs are for."""
    timing = ProgramTiming()
    runner.set_timing(AxiTiming(timing.latency, timing.period))


@pytest.mark.usefixtures("default_timing")
def test_the_prediction_of_a_program_is_for_the_default_timing(runner, program, case):
    session = program.open(runner)
    assert np.array_equal(session(case[0]), case[1])
    assert session.cycles == program.cycles


@pytest.mark.parametrize("latency, period", [(32, 256), (70, 600)])
def test_cycles_with_any_base(config, runner, program, case, latency, period):
    """Bursts end at multiples of 16 beats on the bus, so the base decides where they end."""
    runner.set_timing(AxiTiming(latency, period))
    [segment] = program.segments
    cycles = []
    for beat in (0, 1, 5, 6, 14, 16):
        runner.program_base = beat * config.beat_bytes
        session = program.open(runner)
        assert np.array_equal(session(case[0]), case[1])
        timing = ProgramTiming(latency, period, beat)
        predicted = predict_run(config, segment.run, segment.run_first, program.log, timing)
        assert session.cycles == predicted.cycles
        cycles.append(session.cycles)
    runner.program_base = 0
    assert cycles[0] == cycles[-1] and len({*cycles}) > 2


def test_what_the_base_changes_at_most():
    """The numbers of docs/network-core.md."""
    program = weft.load(CNN).compile(PROGRAM)
    [segment] = program.segments
    cycles = [
        predict_run(
            PROGRAM, segment.run, segment.run_first, program.log, ProgramTiming(first_beat=beat)
        ).cycles
        for beat in range(16)
    ]
    assert (cycles[0], min(cycles) - cycles[0], max(cycles) - cycles[0]) == (5592, -6, 30)


def test_a_program_says_for_which_memory_its_cycles_are(config, program):
    assert program.notes[-1] == (
        "the cycles are for a program memory that answers after 32 cycles with a beat a cycle, and"
        f" a PROGRAM_BASE that is a multiple of {16 * config.beat_bytes} bytes"
    )
    assert not weft.load(CNN).compile(SIMULATED).notes


def test_the_log_is_in_the_program_memory(runner, program, case):
    _, records = program.open(runner)(case[0], stats=True)
    cycles = [record.cycles for record in records if record.cycles is not None]
    assert len(cycles) == len(program.layers) and min(cycles) > 0


def test_a_batch_of_two(config, runner):
    program = weft.load(CNN).compile(config, batch=2)
    x = random_inputs(program, 4)
    with program.open(GoldenRunner(config)) as session:
        wanted = session(x)
    assert np.array_equal(program.open(runner)(x), wanted)


def test_a_silent_memory_ends_the_list_and_a_right_one_runs_then(runner, program, case):
    x, wanted = case
    session = program.open(runner)
    runner.set_timing(AxiTiming(silent=1))
    for _ in range(2):
        with pytest.raises(AcceleratorError, match="TIMEOUT while it loaded the resident"):
            session(x)
    runner.set_timing(AxiTiming(30))
    assert np.array_equal(session(x), wanted)


def test_aborts(runner, program, case):
    x, wanted = case
    session = program.open(runner)
    assert np.array_equal(session(x), wanted)
    runner.set_timing(AxiTiming(45))
    run = program.segments[0].run_first
    for cycle in (3, 14, 30, 57, 58, 59, 200, 777):
        outcome = runner._core.run(run, program.log, abort=cycle)
        assert outcome.state == NetworkState.ABORTED
    session = program.open(runner)
    assert np.array_equal(session(x), wanted)


def test_no_list_leaves_its_window(config, runner, program):
    """A limit below the weights: the list ends, and no access happens beyond it."""
    run = program.segments[0]
    end = -(-(program.log + 2 * program.jobs) // config.banks)  # of an entry: two vectors
    runner._core.write(bytes(config.memory_bytes))
    for limit in (run.run_first // config.banks + 20, end - 1):
        outcome = runner._core.run(run.run_first, program.log, program_limit=limit)
        assert (outcome.state, outcome.error.name) == (NetworkState.ERROR, "ADDRESS")
    assert runner._core.run(run.run_first, program.log, program_limit=end).state == 2


def test_an_unaligned_list_is_refused(runner, program):
    outcome = runner._core.run(program.segments[0].run_first + 1, program.log)
    assert outcome.error.name == "FIELD"


@pytest.mark.usefixtures("default_timing")
def test_matrix_products(config, runner):
    """Sums and results, divided and whole; their cycles are the predicted ones."""
    rng = np.random.default_rng(2)
    core, golden = (
        weft.Accelerator(ListTransport(one)) for one in (runner, GoldenRunner(config))
    )
    for m, k, n, arguments in (
        (7, 9, 11, {}), (1, 1, 1, {}), (40, 33, 5, {"scale": 0.003}), (30, 600, 9, {}),
        (50, 90, 21, {"scale": 0.003, "zero_point": 9, "bias": rng.integers(-999, 999, 21)}),
    ):
        a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((m, k), (k, n)))
        for _ in range(2):
            (y, stats), (wanted, predicted) = (
                one.matmul(a, b, record=True, **arguments) for one in (core, golden)
            )
            assert np.array_equal(y, wanted)
            assert arguments or np.array_equal(y, a.astype(int) @ b.astype(int))
            assert stats == predicted


@pytest.mark.usefixtures("default_timing")
def test_products_between_lists(config, runner):
    """A map outlives them; the program before them stays in the program memory."""
    rng = np.random.default_rng(1)
    builder = NetworkBuilder(rng, (1, 5, 5, 3))
    first = builder.convolution(0, 8)
    x = builder.convolution(first, 8)
    builder.on_host()
    builder.dense(builder.add(builder.convolution(x, 8), first), 6)
    graph = builder.graph()
    program = compile_network_core(graph, target_of(config))
    assert len(program.segments) == 2 and len(program.products) == 1
    x = integers(rng, np.int8, 2, 5, 5, 3)
    session = program.open(runner)
    y, records = session(x, stats=True)
    assert session.cycles == program.cycles
    [step] = program.products
    assert [r.cycles for r in records if r.step is step] == [step.estimate.cycles]
    wanted = [run_graph(graph, [row[None]])[graph.outputs[0]] for row in x]
    np.testing.assert_array_equal(y, np.concatenate(wanted))
