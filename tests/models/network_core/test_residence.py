"""What a network keeps on the chip beside a program memory, and what streams from there."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from digits import CNN
from graph_runner import run_graph
from network_core_networks import NetworkBuilder, random_network
from network_cores import PROGRAM, network_core_config
from network_programs import random_inputs
from rejects import rejects

import weft
from weft.models.c_code import network_core_c_files
from weft.models.errors import ModelError
from weft.models.network_core.compiler import compile_network_core
from weft.models.network_core.prediction import predict_run, streamed_bytes
from weft.models.network_core.residence import TimedJob, TimedLoad, choose_kept, list_cycles
from weft.models.network_core.runners import GoldenRunner
from weft.models.target import NetworkTarget
from weft.network_core.cycles import ProgramTiming
from weft.network_core.cycles.memory import ProgramPortTimes
from weft.network_core.descriptors import ListLoad, LoadTarget, unpack_list
from weft.sim.network_core import AxiTiming, SimulatedRunner

TIMING = ProgramTiming(20, 1024)
SLOW = network_core_config(
    4, 4, 4, 4, words=2048, b_words=200, lines=64, read_vectors=4, program_words=1 << 14
)


def compiled(graph, config, timing=TIMING, **options):
    return compile_network_core(graph, NetworkTarget("core", config, memory=timing), **options)


def deep():
    """Small maps and 10,240 bytes of weights, which no buffer of these cores has."""
    b = NetworkBuilder(np.random.default_rng(3), (1, 4, 4, 3))
    x = b.convolution(0, 32)
    for _ in range(3):
        x = b.convolution(x, 32, kernel=(1, 3))
    b.dense(x, 5)
    return b.graph()


def by_hand(jobs, kept):
    """The cycles of a list: each load begins after the one before and after the jobs it waits for.
    """
    ends, loaded = [0], 0
    for cycles, loads in jobs:
        for load in loads:
            loaded = max(loaded, ends[load.waits])
            loaded += load.fast if load.data in kept else load.slow
        ends.append(max(ends[-1], loaded) + cycles)
    return ends[-1]


def test_the_choice_is_near_the_best_one():
    """Of all subsets that fit, for lists of seven loads; loads share their data, too."""
    rng, found, best, none = np.random.default_rng(5), 0, 0, 0
    for _ in range(40):
        sizes = rng.integers(5, 60, 6)
        data = [*range(6), int(rng.integers(6))]
        jobs = [
            TimedJob(int(rng.integers(20, 400)), [TimedLoad(
                n, int(sizes[n]), max(0, place - 2), 8 * int(sizes[n]), int(sizes[n])
            )])
            for place, n in enumerate(data)
        ]
        room = int(sizes.sum() // 3)
        kept = choose_kept([jobs], room)
        assert sum(sizes[n] for n in kept) <= room
        assert list_cycles(jobs, kept) == by_hand(jobs, kept)
        found += by_hand(jobs, kept)
        none += by_hand(jobs, ())
        best += min(
            by_hand(jobs, chosen) for count in range(7)
            for chosen in itertools.combinations(range(6), count)
            if sum(sizes[n] for n in chosen) <= room
        )
    assert best < found < best + 0.25 * (none - best)


def test_what_loads_in_time_is_not_kept():
    jobs = [TimedJob(100, ()), TimedJob(100, [TimedLoad(1, 8, 0, 90, 10)])]
    assert choose_kept([jobs], 100) == set()
    jobs[1] = TimedJob(100, [TimedLoad(1, 8, 0, 110, 10)])
    assert choose_kept([jobs], 100) == {1}
    assert choose_kept([jobs], 7) == set()


def test_of_equal_data_the_first_ones_are_kept():
    """So a program is the same each time it is compiled."""
    loads = [TimedLoad(n, 8, 0, 90, 10) for n in range(6)]
    assert choose_kept([[TimedJob(1, loads)]], 24) == {0, 1, 2}
    assert choose_kept([[TimedJob(1, loads[::-1])]], 24) == {0, 1, 2}


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_a_network_that_fits_the_chip_takes_no_cycle_more(seed):
    graph = random_network(np.random.default_rng(seed))
    alone = replace(SLOW, program_words=0)
    program = compiled(graph, SLOW)
    wanted = compile_network_core(graph, NetworkTarget("core", alone))
    assert program.whole and program.lists_on_chip and program.program_memory_used == 0
    assert program.cycles == wanted.cycles and program.streamed == 0
    assert program.notes[-1] == (
        "an inference reads 0 bytes of lists and weights from the program memory"
    )
    program.check()


def beats_of(monkeypatch, program, timing):
    """The beats that the model of the memory delivers in an inference."""
    beats, deliver = [], ProgramPortTimes._deliver
    with monkeypatch.context() as patch:
        patch.setattr(
            ProgramPortTimes, "_deliver",
            lambda port, now: (ended := deliver(port, now)) and beats.append(now) or ended,
        )
        for part in program.segments:
            predict_run(
                program.config, part.run, part.run_first, program.log, timing,
                on_chip=program.lists_on_chip,
            )
    return len(beats)


@pytest.mark.parametrize("words, kept", [
    (512, True), *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        (1024, True), (128, False),
    ))
])
def test_lists_and_some_weights_are_kept(monkeypatch, words, kept):
    """With less room, more streams; without room for the list, all does."""
    config = replace(SLOW, words=words)
    program = compiled(deep(), config)
    assert not program.whole and program.lists_on_chip == kept == ("kept" in program.areas)
    assert program.memory_used <= config.memory_bytes
    count = beats_of(monkeypatch, program, TIMING)
    assert program.streamed == count * config.beat_bytes
    assert f"an inference reads {program.streamed:,} bytes" in program.notes[-2]
    x = random_inputs(program, 3)
    with compile_network_core(deep(), NetworkTarget("core", config)).open("golden") as session:
        wanted = session(x)
    for eager in (True, False):
        with program.open(GoldenRunner(config, eager=eager)) as session:
            assert np.array_equal(session(x), wanted)
    program.check()


def test_less_streams_with_more_room():
    programs = [compiled(deep(), replace(SLOW, words=words)) for words in (1024, 512)]
    apart = compile_network_core(deep(), NetworkTarget("core", SLOW))
    [segment] = apart.segments
    all_streams = predict_run(SLOW, segment.run, segment.run_first, apart.log, TIMING).cycles
    larger, smaller = programs
    assert larger.streamed < smaller.streamed < apart.streamed
    assert larger.cycles < smaller.cycles < all_streams


@pytest.mark.slow
def test_bytes_of_a_batch(monkeypatch):
    program = compiled(deep(), replace(SLOW, words=512), batch=2)
    assert program.streamed == beats_of(monkeypatch, program, TIMING) * SLOW.beat_bytes
    assert "a list of 2 inferences reads" in program.notes[-2]
    every = compile_network_core(deep(), NetworkTarget("core", SLOW), batch=2)
    assert every.streamed == beats_of(monkeypatch, every, None) * SLOW.beat_bytes


def test_a_load_of_zeros_and_a_load_from_the_chip_stream_nothing():
    entries = [entry for entry in unpack_list(compiled(deep(), SLOW).segments[0].run)
               if isinstance(entry, ListLoad)]
    assert entries and all(entry.on_chip or entry.fill for entry in entries)
    run = compile_network_core(deep(), NetworkTarget("core", SLOW)).segments[0].run
    count = len(unpack_list(run))
    ends = streamed_bytes(run, SLOW, on_chip=False) - streamed_bytes(run, SLOW, on_chip=True)
    assert ends == 2 * count * 128


def test_a_file_and_c_code(tmp_path):
    program = compiled(deep(), replace(SLOW, words=512))
    program.save(tmp_path / "net.weft")
    again = weft.load(tmp_path / "net.weft")
    assert again.segments[0].stream == program.segments[0].stream != b""
    assert (again.streamed, again.lists_on_chip) == (program.streamed, True)
    with rejects(
        ModelError, "net: the lists must lie in the program memory for C code, not on the chip:"
        " compile the network for a target without the timing of its memory"
    ):
        network_core_c_files(program)


def small():
    b = NetworkBuilder(np.random.default_rng(1), (1, 5, 5, 3))
    b.dense(b.convolution(0, 8), 6)
    return b.graph()


@pytest.fixture(scope="module")
def runner():
    runner = SimulatedRunner(PROGRAM)
    runner.set_timing(AxiTiming(TIMING.latency, TIMING.period))
    yield runner
    runner.close()


def wide():
    """112 parameter lines: the core has 64."""
    b = NetworkBuilder(np.random.default_rng(4), (1, 4, 4, 3))
    x = 0
    for _ in range(7):
        x = b.convolution(x, 32, kernel=(1, 1), padding=(0, 0, 0, 0))
    return b.graph()


def test_parameters_of_some_layers_stay_in_their_buffer(runner):
    """The setup loads those of 3 layers; each inference loads the others, into the last 8 lines."""
    graph = wide()
    program = compiled(graph, PROGRAM)
    lines = [
        [entry for entry in unpack_list(data)
         if isinstance(entry, ListLoad) and entry.target == LoadTarget.PARAMETERS]
        for data in (*program.setup, program.segments[0].run)
    ]
    assert [sum(entry.words for entry in each) for each in lines] == [48, 64]
    assert all(entry.first_word + entry.words <= 56 for entry in lines[0])
    assert all(entry.first_word >= 56 for entry in lines[1])
    x = random_inputs(program, 2)
    wanted = np.concatenate([run_graph(graph, [one[None]])[graph.outputs[0]] for one in x])
    for other in (GoldenRunner(PROGRAM), GoldenRunner(PROGRAM, eager=True), runner):
        session = program.open(other)
        assert np.array_equal(session(x), wanted)
    session = program.open(runner)
    session(x[:1])
    assert session.cycles == program.cycles


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "kept"])
def test_on_the_simulated_core(runner, whole):
    """Bytes, cycles, and the cycles of each layer."""
    pytest.importorskip("tflite")
    target = NetworkTarget("core", PROGRAM, memory=TIMING)
    program = compiled(small(), PROGRAM) if whole else weft.load(CNN).compile(target)
    assert program.lists_on_chip and program.whole == whole and (program.streamed > 0) != whole
    x = random_inputs(program, 2)
    with program.open(GoldenRunner(PROGRAM)) as session:
        wanted = session(x)
    y, records = program.open(runner)(x, stats=True)
    assert np.array_equal(y, wanted)
    session = program.open(runner)
    session(x[:1])
    assert session.cycles == program.cycles
    assert [each.cycles for each in records if each.step in program.layers] == [
        layer.cycles for layer in program.layers
    ]
