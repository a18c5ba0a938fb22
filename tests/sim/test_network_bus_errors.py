"""A simulated core whose program memory answers with errors: each list ends, and names the job."""

import numpy as np
import pytest
from digits import CNN
from network_cores import PROGRAM
from network_programs import random_inputs

import weft
from weft.host.recovery import AcceleratorError
from weft.models.network_core.runners import GoldenRunner
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    ListError,
    ListJob,
    ListLoad,
    NetworkState,
    join,
    unpack_list,
)
from weft.sim.network_core import AxiTiming, SimulatedRunner

pytest.importorskip("tflite")
SLVERR, DECERR = 2, 3
DEPTH, BEAT = PROGRAM.array.depth, PROGRAM.beat_bytes
ENTRY_BYTES = 8  # of a job in the log


@pytest.fixture(scope="module")
def program():
    return weft.load(CNN).compile(PROGRAM)


@pytest.fixture(scope="module")
def runner():
    runner = SimulatedRunner(PROGRAM)
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def case(program):
    """Inputs, and the results of the golden model."""
    x = random_inputs(program, 2)
    with program.open(GoldenRunner(PROGRAM)) as session:
        return x, session(x)


@pytest.fixture
def session(runner, program, case):
    """A session whose weights are loaded; the memory answers well before and after the test."""
    runner.set_timing(AxiTiming())
    session = program.open(runner)
    assert np.array_equal(session(case[0]), case[1])
    yield session
    runner.set_timing(AxiTiming())
    assert np.array_equal(session(case[0]), case[1])


def areas(program):
    """The (kind, first byte, bytes, job) of all that the list of an inference reads and writes.

    A descriptor before a job, and what a load reads, fail the job; END fails behind the last one.
    """
    [segment] = program.segments
    items, job, loads = list(unpack_list(segment.run)), 0, 0
    waits = [item.loads for item in items if isinstance(item, ListJob)]
    for n, item in enumerate(items):
        first = segment.run_first * DEPTH + n * DESCRIPTOR_BYTES
        yield "list", first, DESCRIPTOR_BYTES, job
        if isinstance(item, ListLoad):
            if not item.fill:
                size = item.words * item.word_vectors(PROGRAM) * DEPTH
                needs = next(n for n, wait in enumerate(waits) if wait > loads)
                yield "load", join(item.source, PROGRAM.banks) * DEPTH, size, needs
            loads += 1
        job += isinstance(item, ListJob)
    for n in range(job):
        yield "log", program.log * DEPTH + n * ENTRY_BYTES, ENTRY_BYTES, n


def outcome(runner, program, timing):
    """How the list of an inference ends."""
    runner.set_timing(timing)
    return runner._core.run(program.segments[0].run_first, program.log)


@pytest.mark.parametrize("latency, response", [
    (1, SLVERR), pytest.param(40, DECERR, marks=pytest.mark.slow),
    *(pytest.param(*case, marks=pytest.mark.long) for case in ((1, DECERR), (40, SLVERR))),
])
@pytest.mark.parametrize("kind", ["list", "load", "log"])
def test_an_error_in_any_beat_names_its_job(runner, program, session, kind, latency, response):
    """In each beat that a list reads or writes: so also in the first and last one of a burst."""
    found, expected = [], []
    for name, first, size, job in areas(program):
        for beat in range(first // BEAT * BEAT, first + size, BEAT) if name == kind else ():
            end = outcome(runner, program, AxiTiming(latency, 256, beat, BEAT, response))
            found.append((beat, end.state, end.error, end.job))
            expected.append((beat, NetworkState.ERROR, ListError.BUS, job))
    assert found == expected and len({job for *_, job in found}) >= program.jobs


def test_a_session_says_the_job_and_the_layer(runner, program, session, case):
    layers = {step.first_job: n for n, step in enumerate(program.layers, 1)}
    last = len(program.layers)
    for kind, first, size, job in areas(program):
        runner.set_timing(AxiTiming(5, 256, first, size, SLVERR))
        with pytest.raises(AcceleratorError) as caught:
            session(case[0])
        place = rf"in job {job} (layer {layers[job]} of {last}: " if job in layers else "job"
        assert place in str(caught.value) and kind
        assert str(caught.value).endswith("answered with an error (SLVERR or DECERR)")


def test_a_list_that_loads_resident_weights(runner, program, session, case):
    """Its errors are reported in words, too; it has no job."""
    session._ready = False
    size = len(program.setup[0])
    runner.set_timing(AxiTiming(5, 256, (size - 1) // BEAT * BEAT, BEAT, DECERR))
    with pytest.raises(AcceleratorError, match="error BUS while it loaded the resident weights: "):
        session(case[0])


def test_a_silent_memory_ends_the_list_after_the_time_out(runner, program, session):
    end = outcome(runner, program, AxiTiming(silent=1))
    assert (end.state, end.error, end.job) == (NetworkState.ERROR, ListError.TIMEOUT, 0)
    assert 1 << 16 < end.cycles < (1 << 16) + 200


def test_two_programs_in_one_memory(runner, program, case):
    """Each list stays in its window: an access of the other one's bytes would be an error."""
    x, wanted = case
    size = PROGRAM.program_bytes
    runner.set_timing(AxiTiming())
    sessions = {}
    for base, chosen in ((0, program), (size, weft.load(CNN).compile(PROGRAM, batch=2))):
        runner.program_base = base
        sessions[base] = chosen.open(runner)
    for base in (0, size, 0):
        other = size - base
        before = runner._core.read_program(other, size)
        runner.program_base = base
        runner.set_timing(AxiTiming(3, 256, other, size, DECERR))
        sessions[base]._ready = False  # the other program has loaded its weights
        assert np.array_equal(sessions[base](x), wanted)
        assert runner._core.read_program(other, size) == before
    runner.program_base = 0


@pytest.mark.parametrize("fill", [
    pytest.param(0xAA, marks=pytest.mark.slow), pytest.param(0x55, marks=pytest.mark.long)
])
def test_power_lost_between_two_lists(program, case, fill):
    """The core starts with random maps and empty buffers; all lists run again."""
    x, wanted = case
    for _ in range(2):
        runner = SimulatedRunner(PROGRAM)
        runner._core.write(bytes([fill]) * PROGRAM.memory_bytes)
        session = program.open(runner)
        assert np.array_equal(session(x[:1]), wanted[:1])
        runner.close()
