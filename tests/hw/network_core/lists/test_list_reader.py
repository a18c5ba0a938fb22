"""The list reader: order and fields of jobs and loads as in the golden model, errors, the log."""

import random
import struct

import pytest
from list_bench import ListRun, Timing, descriptors_of, run_lists
from network_cores import small_network_core
from random_lists import random_list, some_job, some_load, store_list
from tiers import tiers

from weft.network_core.descriptors import (
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    NetworkState,
    join,
    split,
)

CHIPS = {
    "4x4x4": small_network_core(4, 4, 4, read_vectors=2, words=512, b_words=16, lines=8),
    "2x2x2": small_network_core(2, 2, 2, read_vectors=2, words=1024),
    "1x8x16": small_network_core(1, 8, 16, read_vectors=8, words=64),
    "3x4x64": small_network_core(3, 4, 64, read_vectors=4, words=32),
    "1x2x8": small_network_core(1, 2, 8, words=512, multiply_maps=True),
}
TIMINGS = {
    "fast": Timing(jobs=(1, 5), loads=(1, 5), latency=2),
    "slow": Timing(jobs=(1, 150), loads=(1, 100), stall=0.4, latency=5),
}


def log_of(config, memory, run, base):
    """The (start, end) of each job in the log."""
    entry = -(-8 // config.array.depth) * config.array.depth
    first = (join(run.log, config.banks) + base * config.banks) * config.array.depth
    return [
        struct.unpack_from("<2I", memory, first + n * entry) for n in range(len(run.starts))
    ]


@pytest.mark.parametrize("case", tiers(
    {f"{name}-{timing}": (name, timing) for name in CHIPS for timing in TIMINGS},
    "4x4x4-slow", "1x8x16-fast", "1x2x8-fast", long={"2x2x2-slow", "1x8x16-slow"},
))
def test_random_lists(case):
    name, timing = case
    config, rng = CHIPS[name], random.Random(f"{name}{timing}")
    memory = bytearray(rng.randbytes(config.memory_bytes))
    base, runs, number = 3, [], 3 * config.banks + 1
    lists = [random_list(rng, config, count) for count in (6, 10)]
    for descriptors in lists:
        number += rng.randrange(7)
        address = store_list(config, memory, number, descriptors)
        runs.append(
            ListRun(split(join(address, config.banks) - base * config.banks, config.banks), 0)
        )
        number += -(-128 // config.array.depth) * len(descriptors)
    for run in runs:
        run.log = split(number - base * config.banks, config.banks)
        number += 60 * -(-8 // config.array.depth)
    run_lists(config, memory, runs, base=base, timing=TIMINGS[timing], seed=5)
    for run, descriptors in zip(runs, lists, strict=True):
        jobs, loads = (
            descriptors_of(config, memory, run.list, kind, base) for kind in (ListJob, ListLoad)
        )
        assert len(run.starts) == len(run.ends) == len(jobs)
        assert len(run.load_starts) == len(run.load_ends) == len(loads)
        assert run.status["state"] == NetworkState.DONE
        assert run.status["error"] == ListError.NONE
        assert run.status["job"] == len(jobs)
        assert run.status["result_bytes"] == descriptors[-1].result_bytes
        result = run.status["result"]
        assert result["word"] * config.banks + result["bank"] == (
            join(descriptors[-1].result, config.banks) + base * config.banks
        )
        assert log_of(config, memory, run, base) == list(zip(run.starts, run.ends, strict=True))


FAST_CHIP = small_network_core(8, 8, 8, read_vectors=4, words=64)


def jobs_of(config, count, first=()):
    """A list of jobs that wait for nothing."""
    return [*first, *(some_job(random.Random(n), config) for n in range(count)), ListEnd()]


def run_alone(config, descriptors, timing):
    memory = bytearray(config.memory_bytes)
    run = ListRun(
        store_list(config, memory, 0, descriptors), split(config.vectors - 60, config.banks)
    )
    run_lists(config, memory, [run], timing=timing)
    assert run.status["state"] == NetworkState.DONE
    return run, memory


def test_the_next_job_starts_in_the_next_cycle():
    run, _ = run_alone(FAST_CHIP, jobs_of(FAST_CHIP, 6), Timing(jobs=(30, 30), latency=4))
    gaps = [start - end for start, end in zip(run.starts[1:], run.ends[:-1], strict=True)]
    # The head of loads walks to END beside the first job.
    assert gaps[1:] == [1] * 4


def test_the_next_load_starts_in_the_cycle_of_the_end_of_the_last_one():
    loads = [some_load(random.Random(n), FAST_CHIP) for n in range(5)]
    run, _ = run_alone(FAST_CHIP, [*loads, ListEnd()], Timing(loads=(40, 40), latency=4))
    assert run.load_starts[1:] == run.load_ends[:-1]


@pytest.mark.parametrize("config, stall", [(FAST_CHIP, 0.98), (CHIPS["1x2x8"], 0.995)])
def test_a_slow_log_delays_jobs_but_loses_nothing(config, stall):
    timing = Timing(jobs=(20, 25), log_stall=stall)
    run, memory = run_alone(config, jobs_of(config, 6), timing)
    assert log_of(config, memory, run, 0) == list(zip(run.starts, run.ends, strict=True))


def test_a_reader_ends_a_list_whose_log_leaves_the_limits():
    config = CHIPS["1x2x8"]
    memory = bytearray(config.memory_bytes)
    list_address = store_list(config, memory, 0, jobs_of(config, 3))
    run = ListRun(list_address, split(config.vectors - 2, config.banks))
    run_lists(config, memory, [run], timing=Timing())
    assert run.status["state"] == NetworkState.ERROR
    assert (run.status["error"], run.status["job"]) == (ListError.ADDRESS, 2)
