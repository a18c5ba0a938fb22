"""Jobs of all kinds in random order on the simulated network core: bytes, cycles, interruptions."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from early_jobs import started_early
from network_core_softmax import softmax_rows
from network_cores import (
    EARLY,
    EARLY_ROW,
    MICRO,
    ROW,
    SIMULATED,
    SIMULATED_LONG,
    SIMULATED_SLOWLY,
    TWO_ROWS,
)
from network_duel import compare_memories, log_vectors

from weft.golden.network_core import run_list
from weft.golden.network_core.digits import DIGITS
from weft.network_core.config import LSTM_LIMITS, LSTM_PARAMETERS, LSTM_SCALES
from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import (
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    LoadTarget,
    NetworkState,
    join,
    split,
)
from weft.sim.network_core import HostTraffic, NetworkSimulation

CHIPS = [
    SIMULATED, MICRO, EARLY, TWO_ROWS, pytest.param(ROW, marks=pytest.mark.slow),
    pytest.param(EARLY_ROW, marks=pytest.mark.long),
    *(pytest.param(config, marks=pytest.mark.slow) for config in SIMULATED_SLOWLY),
    *(pytest.param(config, marks=pytest.mark.long) for config in SIMULATED_LONG),
]
SLOT, SLOTS = 128, 8  # vectors of the place of a map, and places
IN_PITCH, OUT_PITCH = 4, 17
B_WORDS, TABLE, LAYERS = 6, 512, 4  # words of B and of the ADD table; layers with parameters
LOADS = 3
CELL = 80  # vectors from the sums of an LSTM to its cell


@pytest.fixture(scope="module", params=CHIPS, ids=lambda c: f"{c.array.target}-{c.array.name}")
def core(request):
    with NetworkSimulation(request.param) as simulation:
        yield simulation


@dataclass(eq=False)
class Sequence:
    """Random jobs behind the loads of their words; the memory before them."""

    config: object
    jobs: list
    memory: np.ndarray
    loads: list
    limit: int  # the first word beyond
    list_vector: int
    log: int

    def placed(self, jobs=None) -> np.ndarray:
        """The memory with the list of the jobs, or of others."""
        data = b"".join(
            entry.pack() for entry in (*self.loads, *(jobs or self.jobs), ListEnd())
        )
        memory, first = self.memory.copy(), self.list_vector * self.config.array.depth
        memory[first : first + len(data)] = np.frombuffer(data, np.uint8)
        return memory

    def golden(self, memory):
        """The outcome of the golden model, which changes the memory."""
        banks = self.config.banks
        places = split(self.list_vector, banks), split(self.log, banks)
        return run_list(self.config, memory, *places, limit=self.limit)

    def run(self, core, memory, **options):
        """The outcome of the core."""
        core.write(memory.tobytes())
        return core.run(self.list_vector, self.log, limit=self.limit, **options)


def lines_of(rng, config):
    """The parameters of layers: a line for each chunk of two tiles, and one of a sum."""
    lanes, lines = config.array.lanes, LAYERS * (2 * config.row_chunks + 1)
    values = np.zeros((lines, lanes), [("bias", "<i4"), ("multiplier", "<u4"), ("shift", "i1")])
    values["bias"] = rng.integers(-3000, 3000, values.shape)
    values["multiplier"] = rng.integers(1 << 30, 1 << 31, values.shape)
    values["shift"] = rng.integers(-13, -7, values.shape)
    sums = values[2 * config.row_chunks :: 2 * config.row_chunks + 1]
    sums["bias"], sums["shift"] = 0, rng.integers(-26, -15, (LAYERS, 1))
    if config.array.requantize == "onnx":  # the bits of a float32 scale, and no shift
        scales = np.exp2(rng.uniform(-13, -7, values.shape))
        scales[2 * config.row_chunks :: 2 * config.row_chunks + 1] /= 1 << 12
        values["multiplier"], values["shift"] = scales.astype("<f4").view("<u4"), 0
    sums["multiplier"] = sums["multiplier"][:, :1]
    data = np.zeros((lines, config.line_vectors * config.array.depth), np.uint8)
    data[:, : 9 * lanes] = values.view(np.uint8).reshape(lines, -1)
    return data


def table_of(rng, config):
    """The exponentials of a SOFTMAX, which serve an LSTM as well, and words of the results.

    With LSTM its parameters are among them.
    """
    words = np.concatenate([
        softmax_rows(np.zeros((1, 1, 1), np.int8), 0.1).table,
        rng.integers(-(1 << 31), 1 << 31, TABLE - 256),
    ])
    if config.lstm:
        words[LSTM_PARAMETERS:LSTM_LIMITS:2] &= 0x7FFFFFFF
        words[LSTM_PARAMETERS + 1 : LSTM_LIMITS : 2] = rng.integers(-18, -10, LSTM_SCALES)
        words[LSTM_LIMITS] = 9000 | -15000 << 16
    data = np.zeros((TABLE, config.add_table_vectors * config.array.depth), np.uint8)
    data[:, :4] = words.astype("<i4").reshape(-1, 1).view(np.uint8)
    return data


def kinds_of(config):
    """The kinds of jobs that a core has."""
    kinds = ["plain", "sums", "add", "partial"]
    kinds += ["multiply"] * config.multiply_maps + [*DIGITS] * config.int16
    kinds += ["two_rows"] * config.two_rows
    return kinds + ["softmax"] * config.softmax + ["lstm"] * config.lstm


def sequence(rng, config, count=12) -> Sequence:
    """A random sequence with a job of each kind that the core has."""
    depth, banks = config.array.depth, config.banks
    memory = rng.integers(0, 256, config.memory_bytes, np.uint8)
    loads, number = [], SLOT * SLOTS
    for target, words in (
        (LoadTarget.B, rng.integers(0, 256, (B_WORDS, config.array.cols * depth), np.uint8)),
        (LoadTarget.PARAMETERS, lines_of(rng, config)),
        (LoadTarget.ADD_TABLE, table_of(rng, config)),
    ):
        memory[number * depth : number * depth + words.size] = words.reshape(-1)
        packed = config.int4 and target == LoadTarget.B and int(rng.integers(2))
        loads.append(ListLoad(
            packed=packed, target=target, source=split(number, banks), words=len(words)
        ))
        number += -(-words.size // depth // config.read_vectors) * config.read_vectors
    kinds = kinds_of(config)
    order = kinds + [str(kind) for kind in rng.choice(kinds, count - len(kinds))]
    jobs = [job for kind in rng.permutation(order) for job in jobs_of_kind(rng, config, kind)]
    if config.early:
        jobs = chained(rng, config, jobs)
    list_vector = number
    log = list_vector + 128 // depth * (len(jobs) + LOADS + 1)
    limit = -(-(log + 8 * len(jobs) + 8) // banks)
    assert limit < config.words - 64
    return Sequence(config, jobs, memory, loads, limit, list_vector, log)


def chained(rng, config, jobs):
    """The jobs, some early; most of them read the map of the job before, or its neighbours."""
    changed = []
    for job in jobs:
        before = changed[-1] if changed else None
        if before and not (
            job.softmax or job.lstm or job.partial or before.partial
        ) and rng.random() < 0.7:
            source = join(before.output, config.banks) // SLOT
            written = join(job.output, config.banks)
            if written // SLOT == source:
                job = replace(job, output=split((written + SLOT) % (SLOT * SLOTS), config.banks))
            first = SLOT * source + int(rng.integers(-4, 40))
            job = replace(job, input=split(max(0, first), config.banks))
        changed.append(started_early(rng, config, job))
    return changed


def jobs_of_kind(rng, config, kind):
    """A job of a kind; a partial one with the job that goes on with its sums."""
    if kind == "partial":
        forms = ["plain", "sums", "add"] + ["multiply"] * config.multiply_maps
        forms += ["two_rows"] * config.two_rows
        form = rng.choice(forms + [*DIGITS] * config.int16)
        width, columns = rng.integers(1, 1 + config.array.rows), 1 + rng.integers(config.array.cols)
        parts = 1 + rng.integers(2)
        shape = 1, min(int(width), 3), int(columns)
        jobs = [job_of(rng, config, form, shape) for _ in range(parts + 1)]
        return [replace(job, partial=1) for job in jobs[:-1]] + jobs[-1:]
    shape = rng.integers(1, (3, 4, 1 + 2 * config.array.cols))
    if kind == "lstm":
        shape[:2] = 1
    return [job_of(rng, config, kind, tuple(map(int, shape)))]


def job_of(rng, config, kind, shape):
    """A job with an output map of a shape; its maps do not overlap, except a SOFTMAX in place."""
    (height, width, columns), banks = shape, config.banks
    panel_rows = config.array.rows
    if kind == "two_rows":
        width += width % 2
        if height > 1:  # a job with parts has one panel
            panel_rows = 2 * int(1 + rng.integers(panel_rows // 2))
    source, added, output = (
        SLOT * int(slot) + int(rng.integers(8)) for slot in rng.permutation(SLOTS)[:3]
    )
    if kind == "softmax":
        output = source if rng.random() < 0.3 else output
    steps = int(1 + rng.integers(3))
    maps = [("input", source, OUT_PITCH if kind == "softmax" else IN_PITCH),
            ("output", output, OUT_PITCH)]
    if kind == "lstm":
        maps.append(("add", added, CELL))
    flags, line = {}, int(rng.integers(LAYERS)) * (2 * config.row_chunks + 1)
    if kind in ("add", "multiply"):
        maps.append(("add", added, OUT_PITCH))
        flags = dict(add=1, multiply=int(kind == "multiply"), add_line=line + 2 * config.row_chunks)
    elif kind != "plain":
        flags = {kind: 1}
    for name, first, pitch in maps:
        flags["add_input" if name == "add" else name] = split(first, banks)
        flags[f"{name}_pixel_step"] = split(pitch, banks)
        flags[f"{name}_row_step"] = split(pitch, banks)
    low, sum_low = (int(value) for value in rng.integers(-128, 0, 2))
    zero = int(rng.integers(-20, 20))
    if kind in DIGITS:
        columns = -(-columns // DIGITS[kind]) * DIGITS[kind]
    if kind in DIGITS and kind != "quads":
        zero, low = 0, -128
        limits = sorted(int(value) for value in rng.integers(-(1 << 15), 1 << 15, 2))
        flags |= dict(zip(("pair_low", "pair_high"), limits, strict=True))
    return ListJob(
        loads=LOADS, cross=int(rng.integers(2)), panel_rows=panel_rows,
        out_height=height, out_width=width,
        columns=columns, tile_words=steps, kernel_height=1, kernel_width=1, tap_vectors=steps,
        group_tiles=2, in_height=height, in_width=width, stride_y=1, stride_x=1, b_step=steps,
        parameter_line=line, zero=zero, low=low, high=127,
        sum_zero=int(rng.integers(-20, 20)), sum_low=sum_low, sum_high=127, **flags,
    )


def test_bytes_and_cycles(core):
    rng, config = np.random.default_rng(1), core.config
    for _ in range(40 if config.early else 6):
        case = sequence(rng, config)
        memory = case.placed()
        outcome = case.run(core, memory)
        assert case.golden(memory).error == ListError.NONE
        assert outcome.state == NetworkState.DONE
        times = compare_memories(config, core.read(), memory, case.log, len(case.jobs))
        prediction = predict_list(
            config, [*case.loads, *case.jobs, ListEnd()], split(case.list_vector, config.banks),
            split(case.log, config.banks),
        )
        assert times.tolist() == [list(job) for job in prediction.jobs]
        assert outcome.cycles == prediction.cycles


def test_the_host_accesses_the_memory(core):
    rng, config = np.random.default_rng(2), core.config
    for rate in (60, 256):
        case = sequence(rng, config)
        memory, first = case.placed(), case.limit * config.banks
        area = first, config.vectors - first
        outcome = case.run(
            core, memory, traffic=HostTraffic(rate, reads=(0, 0), writes=area, seed=rate)
        )
        case.golden(memory)
        assert (outcome.state, outcome.wrong) == (NetworkState.DONE, 0)
        assert outcome.writes > 10
        found = np.frombuffer(core.read(), np.uint8).copy()
        written = slice(first * config.array.depth, None)
        found[written] = memory[written]
        compare_memories(config, found, memory, case.log, len(case.jobs))


def test_an_abort_and_the_same_jobs_after_it(core):
    rng, config = np.random.default_rng(3), core.config
    case = sequence(rng, config)
    expected = case.placed()
    cycles = case.run(core, expected).cycles
    case.golden(expected)
    for cycle in sorted(rng.choice(np.arange(1, cycles), 16, replace=False)):
        aborted = case.run(core, case.placed(), abort=int(cycle))
        assert (aborted.state, aborted.error) == (NetworkState.ABORTED, ListError.ABORTED)
        core.write(case.placed().tobytes())
        outcome = core.run(case.list_vector, case.log, limit=case.limit)
        assert (outcome.state, outcome.cycles) == (NetworkState.DONE, cycles)
        compare_memories(config, core.read(), expected, case.log, len(case.jobs))


@pytest.mark.parametrize(
    "kind", ["plain", "sums", "add", "partial", "multiply", "softmax", "lstm", *DIGITS, "two_rows"]
)
def test_a_map_beyond_the_limit_and_correct_jobs_after_it(core, kind):
    config = core.config
    if kind not in kinds_of(config):
        pytest.skip("the core has no such jobs")
    rng = np.random.default_rng(4)
    for _ in range(6 if config.early else 2):
        case = sequence(rng, config)
        number = [n for n, job in enumerate(case.jobs) if kind == "plain" or getattr(job, kind)][-1]
        job = case.jobs[number]
        names = ["input", "output"] + ["add_input"] * (job.add | job.lstm)
        names = ["input"] if job.partial else names
        outside = {str(rng.choice(names)): split(case.limit * config.banks, config.banks)}
        if config.early and "input" in outside:
            # Before the memory: a panel does not wait for such vectors.
            outside["input"] = split(-2 * config.banks, config.banks)
        jobs = [*case.jobs[:number], replace(job, **outside), *case.jobs[number + 1 :]]
        memory = case.placed(jobs)
        outcome, expected = case.run(core, memory), case.golden(memory)
        assert outcome.error == expected.error == ListError.ADDRESS
        assert outcome.job == expected.jobs
        # The maps and the entries of the jobs before are complete.
        found = np.frombuffer(core.read(), np.uint8).copy()
        depth = config.array.depth
        for place in (jobs[number].output, *[jobs[number].add_input] * job.lstm):  # with its cell
            slot = join(place, config.banks) // SLOT
            own = slice(slot * SLOT * depth, (slot + 1) * SLOT * depth)
            if slot < SLOTS:
                found[own] = memory[own]
        # A microprogram writes the start of a job into the log at once.
        entry = slice(*(
            (case.log + log_vectors(config, expected.jobs + more)) * depth for more in (0, 1)
        ))
        found[entry] = memory[entry]
        compare_memories(config, found, memory, case.log, expected.jobs)
        memory = case.placed()
        assert case.run(core, memory).state == NetworkState.DONE
        case.golden(memory)
        compare_memories(config, core.read(), memory, case.log, len(case.jobs))
