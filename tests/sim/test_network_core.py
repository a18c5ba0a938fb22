"""Lists on the simulated network core: every byte of the memory equals the golden model's."""

from dataclasses import replace

import numpy as np
import pytest
from network_core_lists import random_list
from network_cores import EARLY, MICRO, ROW, SIMULATED, SIMULATED_LONG, SIMULATED_SLOWLY
from network_duel import compare_memories
from tiers import tiers

from weft.golden.network_core import run_list
from weft.network_core.cycles import predict_list
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
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

# `test_job_sequences.py` has quick jobs on MICRO and EARLY.
CHIPS = [
    SIMULATED, *(pytest.param(c, marks=pytest.mark.slow) for c in (ROW, *SIMULATED_SLOWLY)),
    *(pytest.param(c, marks=pytest.mark.long) for c in (MICRO, EARLY, *SIMULATED_LONG)),
]


@pytest.fixture(scope="module", params=CHIPS, ids=lambda c: f"{c.array.target}-{c.array.name}")
def core(request):
    with NetworkSimulation(request.param) as simulation:
        yield simulation


def lists(config, count, seed, **options):
    """Random lists that fit the memory."""
    rng = np.random.default_rng(seed)
    while count:
        try:
            case = random_list(rng, config, resident=0, **options)
        except MemoryError:
            continue
        yield case
        count -= 1


def place(config, case):
    """The vectors of the list and of its log, relative to the base."""
    return join(case.list_address, config.banks), join(case.log_address, config.banks)


def execute(core, case, **options):
    """Execute a list on the core and in the golden model, and compare outcomes and memories."""
    config, memory = core.config, case.image.memory.copy()
    core.write(case.image.memory.tobytes())
    list_vector, log = place(config, case)
    outcome = core.run(list_vector, log, base=case.base, limit=case.limit, **options)
    expected = run_list(
        config, memory, case.list_address, case.log_address, base=case.base, limit=case.limit
    )
    assert outcome.finished
    assert (outcome.error, outcome.job) == (expected.error, expected.jobs)
    times = compare_memories(
        config, core.read(), memory, log + case.base * config.banks, expected.jobs
    )
    assert (times <= outcome.cycles).all()
    if expected.error == ListError.NONE:
        first = outcome.result * config.array.depth
        assert memory[first : first + outcome.result_bytes].tobytes() == expected.result
    return outcome


def execute_jobs(core, loads, jobs, memory, list_vector, log):
    """Execute loads and jobs in a memory, compare it with golden, and return the times of jobs."""
    config = core.config
    data = b"".join(entry.pack() for entry in (*loads, *jobs, ListEnd()))
    first = list_vector * config.array.depth
    memory[first : first + len(data)] = np.frombuffer(data, np.uint8)
    core.write(memory.tobytes())
    assert core.run(list_vector, log).state == NetworkState.DONE
    run_list(config, memory, split(list_vector, config.banks), split(log, config.banks))
    return compare_memories(config, core.read(), memory, log, len(jobs))


def test_random_lists(core):
    for case in lists(core.config, 6, seed=1):
        outcome = execute(core, case)
        assert outcome.state == NetworkState.DONE
        assert outcome.job == case.jobs


def test_a_list_within_base_and_limit(core):
    for case in lists(core.config, 3, seed=2, base=5, limit=900):
        assert execute(core, case).state == NetworkState.DONE


def spoiled(config, case, number, **fields):
    """The case with other fields in the descriptor of this number."""
    changed = replace(case.descriptors[number], **fields)
    first = (place(config, case)[0] + case.base * config.banks) * config.array.depth
    at = first + number * DESCRIPTOR_BYTES
    memory = case.image.memory.copy()
    memory[at : at + DESCRIPTOR_BYTES] = np.frombuffer(changed.pack(), np.uint8)
    return memory


# Fields that are wrong, by kind of descriptor; the limit is word 900.
FAULTS = {
    "columns": (ListJob, "columns", 0), "output before": (ListJob, "output", -1),
    "output beyond": (ListJob, "output", 900), "input": (ListJob, "input", 900),
    "loads": (ListJob, "loads", 999),
    "words": (ListLoad, "words", 0), "source": (ListLoad, "source", -1),
    "jobs": (ListLoad, "jobs", 99),
    "result_bytes": (ListEnd, "result_bytes", 2000), "result": (ListEnd, "result", 900),
}


def wrong_list(config, kind, field, value):
    """A random list whose last descriptor of a kind is wrong: the case, its memory, its outcome.

    A job may read only values outside of its map: then it has no wrong address, and the next list
    is taken.
    """
    for seed in range(8, 20):
        [case] = lists(config, 1, seed=seed, base=7, limit=900, most_turns=1)
        numbers = [n for n, entry in enumerate(case.descriptors) if isinstance(entry, kind)]
        memory = spoiled(config, case, numbers[-1], **{field: value})
        expected = run_list(
            config, memory.copy(), case.list_address, case.log_address, base=case.base,
            limit=case.limit,
        )
        if expected.error != ListError.NONE:
            return case, memory, expected
    raise AssertionError(f"no list has an error with {field} {value}")


@pytest.mark.parametrize("fault", tiers(
    FAULTS, "output beyond", "words", "result_bytes", long=["output before", "jobs", "result"]
))
def test_errors_and_a_correct_list_after_them(core, fault):
    (kind, field, value), config = fault, core.config
    if field in ("output", "input", "source", "result"):
        value = split(value * config.banks, config.banks)
    case, memory, expected = wrong_list(config, kind, field, value)
    core.write(memory.tobytes())
    outcome = core.run(*place(config, case), base=case.base, limit=case.limit)
    assert outcome.state == NetworkState.ERROR
    assert (outcome.error, outcome.job) == (expected.error, expected.jobs)
    assert execute(core, case).state == NetworkState.DONE


def test_an_error_of_the_only_store_has_the_number_of_its_job(core):
    config = core.config
    job = ListJob(
        panel_rows=1, out_height=1, out_width=1, columns=1, tile_words=1, kernel_height=1,
        kernel_width=1, tap_vectors=1, group_tiles=1, in_height=1, in_width=1,
    )
    outside = replace(job, output=split(900 * config.banks, config.banks))
    data = b"".join(entry.pack() for entry in (job, outside, job, ListEnd()))
    memory = bytearray(config.memory_bytes)
    first = 200 * config.array.depth
    memory[first : first + len(data)] = data
    core.write(bytes(memory))
    outcome = core.run(200, 600, limit=900)
    assert (outcome.error, outcome.job) == (ListError.ADDRESS, 1)
    places = split(200, config.banks), split(600, config.banks)
    assert run_list(config, memory, *places, limit=900).jobs == 1


def test_a_layer_of_one_step_takes_at_most_64_cycles(core):
    """From the last store of the job before to its own last store."""
    config, rows = core.config, core.config.array.rows
    if config.array.depth * config.read_vectors < 8:
        pytest.skip("a core that reads fewer bytes a cycle waits for the descriptor")
    pitch = -(-config.array.cols // config.array.depth)
    jobs = [
        ListJob(
            loads=2, panel_rows=rows, out_height=1, out_width=rows, columns=config.array.cols,
            tile_words=1, kernel_height=1, kernel_width=1, tap_vectors=1, group_tiles=1,
            in_height=1, in_width=rows, input=split(50 * n, config.banks),
            input_pixel_step=split(pitch, config.banks), output=split(50 * n + 50, config.banks),
            output_pixel_step=split(pitch, config.banks), low=-128, high=127,
        )
        for n in range(3)
    ]
    loads = [
        ListLoad(target=target, fill=1, fill_value=1, words=words)
        for target, words in ((LoadTarget.B, 1), (LoadTarget.PARAMETERS, config.row_chunks))
    ]
    memory = np.random.default_rng(6).integers(0, 256, config.memory_bytes, np.uint8)
    times = execute_jobs(core, loads, jobs, memory, list_vector=200, log=1000)
    assert (np.diff(times[:, 1]) <= 64).all(), times


def test_the_first_step_reads_the_last_store_of_the_job_before(core):
    """The job before stores the end of this vector last, when the next descriptor is ready."""
    config, steps = core.config, 80
    pixel = dict(
        loads=2, panel_rows=1, out_height=1, out_width=1, tile_words=steps, tap_vectors=steps,
        kernel_height=1, kernel_width=1, group_tiles=1, in_height=1, in_width=1, low=-128, high=127,
    )
    kinds = [dict(sums=1, columns=1), dict(columns=config.array.lanes)] * 3
    jobs = [
        ListJob(
            **pixel, **kind, input=split(1100 + n, config.banks),
            output=split(1101 + n, config.banks)
        )
        for n, kind in enumerate(kinds)
    ]
    loads = [
        ListLoad(target=target, fill=1, fill_value=1, words=words)
        for target, words in ((LoadTarget.B, steps), (LoadTarget.PARAMETERS, config.row_chunks))
    ]
    memory = np.random.default_rng(10).integers(0, 256, config.memory_bytes, np.uint8)
    times = execute_jobs(core, loads, jobs, memory, list_vector=200, log=1000)
    prediction = predict_list(
        config, [*loads, *jobs, ListEnd()], split(200, config.banks), split(1000, config.banks)
    )
    assert times.tolist() == [list(job) for job in prediction.jobs]


def test_a_job_with_add_right_behind_a_job_with_sums(core):
    """The scalers have no result of the sums, which are still under way in their pipeline."""
    config = core.config
    pixel = dict(
        loads=3, panel_rows=1, out_height=1, out_width=1, columns=config.array.cols,
        tile_words=1, kernel_height=1, kernel_width=1, tap_vectors=1, group_tiles=1, in_height=1,
        in_width=1, low=-128, high=127, sum_low=-128, sum_high=127,
    )
    added = dict(add=1, add_line=config.row_chunks, add_input=split(2, config.banks))
    jobs = [
        ListJob(**pixel, **kind, output=split(300 + 40 * n, config.banks))
        for n, kind in enumerate([dict(sums=1), added, dict(sums=1), {}, dict(sums=1), added])
    ]
    loads = [
        ListLoad(target=target, fill=1, fill_value=1, words=words)
        for target, words in (
            (LoadTarget.B, 1), (LoadTarget.PARAMETERS, 2 * config.row_chunks),
            (LoadTarget.ADD_TABLE, 512),
        )
    ]
    memory = np.random.default_rng(8).integers(0, 16, config.memory_bytes, np.uint8)
    execute_jobs(core, loads, jobs, memory, list_vector=800, log=600)


def test_an_error_in_a_part_and_a_list_after_it(core):
    """A list that is cut off after a part leaves no sums to the next list."""
    config, limit = core.config, core.config.words * 3 // 4
    outside = split(limit * config.banks, config.banks)
    sizes = {"layers": 2, "most_turns": 1, "most_pixels": 3, "most_channels": 5}
    found = 0
    for case in lists(config, 60, seed=31, base=7, limit=limit, parts=1, **sizes):
        numbers = [n for n, entry in enumerate(case.descriptors) if getattr(entry, "partial", 0)]
        for number in numbers[1:]:
            memory = spoiled(config, case, number, input=outside)
            expected = run_list(
                config, memory.copy(), case.list_address, case.log_address, base=case.base,
                limit=case.limit,
            )
            if expected.error != ListError.NONE:  # the part reads a vector inside its map
                core.write(memory.tobytes())
                outcome = core.run(*place(config, case), base=case.base, limit=case.limit)
                assert (outcome.error, outcome.job) == (ListError.ADDRESS, expected.jobs)
                assert execute(core, case).state == NetworkState.DONE
                found += 1
                break
        if found == 3:
            return
    raise AssertionError(f"3 lists must have an error in a part, not {found}")


def test_a_part_at_the_end_of_a_list_has_no_effect_on_the_next_list(core):
    config = core.config
    pixel = dict(
        loads=2, panel_rows=1, out_height=1, out_width=1, tile_words=3, tap_vectors=3,
        kernel_height=1, kernel_width=1, group_tiles=1, in_height=1, in_width=1, low=-128, high=127,
        columns=config.array.cols, input=split(1100, config.banks), sums=1,
    )
    job = ListJob(**pixel, output=split(1110, config.banks))
    part = replace(job, partial=1)
    loads = [
        ListLoad(target=target, fill=1, fill_value=1, words=words)
        for target, words in ((LoadTarget.B, 3), (LoadTarget.PARAMETERS, config.row_chunks))
    ]
    memory = np.random.default_rng(10).integers(0, 256, config.memory_bytes, np.uint8)
    execute_jobs(core, loads, [job, part, part], memory, list_vector=200, log=1000)
    once = memory.copy()
    execute_jobs(core, loads, [job], memory, list_vector=200, log=1000)
    first = 1110 * config.array.depth
    stored = slice(first, first + 4 * config.array.cols)
    assert (once[stored] == memory[stored]).all()
    execute_jobs(core, loads, [part, part, job], memory, list_vector=200, log=1000)
    assert (once[stored] != memory[stored]).any()


@pytest.mark.parametrize("parts", [0, 1])
@pytest.mark.parametrize("stride", [
    61, pytest.param(7, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.long),
])
def test_a_list_at_once_after_an_abort_in_any_cycle(core, stride, parts):
    """While the aborted list runs, the host writes random bytes to the last map."""
    config = core.config
    if config != SIMULATED:  # one core has the shorter stride
        stride *= 7
    sizes = {"layers": 2, "most_pixels": 2, "most_channels": 3}
    [case] = lists(config, 1, seed=4, add=False, parts=parts, **sizes)
    cycles = execute(core, case).cycles
    list_vector, log = place(config, case)
    expected = np.frombuffer(core.read(), np.uint8)
    last, values = case.maps[-1]
    area = last.number, values.shape[0] * last.row_pitch
    for cycle in range(1, cycles, stride):
        traffic = HostTraffic(256, writes=area, seed=cycle)
        aborted = core.run(list_vector, log, abort=cycle, traffic=traffic)
        outcome = core.run(list_vector, log)
        assert aborted.finished
        assert (aborted.state, aborted.error) == (NetworkState.ABORTED, ListError.ABORTED)
        assert (outcome.state, outcome.cycles) == (NetworkState.DONE, cycles)
        found = np.frombuffer(core.read(), np.uint8).reshape(-1, config.array.depth).copy()
        # Bytes beyond the last map's channels keep what the host has written.
        written = expected.reshape(-1, config.array.depth)
        index = case.image.map_index(last, values.shape)
        assert (found[index] == written[index]).all(), cycle
        found[area[0] : sum(area)] = written[area[0] : sum(area)]
        compare_memories(config, found, expected, log, case.jobs)


def test_the_host_accesses_the_memory_while_a_list_runs(core):
    config = core.config
    area = config.vectors // 8
    for rate in (40, 256):
        for case in lists(config, 4, seed=rate, limit=config.words * 3 // 4):
            reads, writes = config.vectors - 2 * area, config.vectors - area
            memory = case.image.memory.copy()
            core.write(memory.tobytes())
            list_vector, log = place(config, case)
            outcome = core.run(list_vector, log, limit=case.limit, traffic=HostTraffic(
                rate, reads=(reads, area), writes=(writes, area), seed=rate
            ))
            assert (outcome.state, outcome.wrong) == (NetworkState.DONE, 0)
            assert min(outcome.reads, outcome.writes) > outcome.cycles / 200
            run_list(
                config, memory, case.list_address, case.log_address, base=case.base,
                limit=case.limit,
            )
            found = np.frombuffer(core.read(), np.uint8).copy()
            written = slice(writes * config.array.depth, None)
            assert (found[written] != memory[written]).any()
            found[written] = memory[written]
            compare_memories(config, found, memory, log, case.jobs)
