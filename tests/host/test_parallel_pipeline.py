"""Tests of pipelines of layers over several cores: order, waits, and failures."""

import threading
import time

import numpy as np
import pytest
from products import check_equal, cores, exact, integers
from rejects import rejects

from weft.host.parallel import ParallelError, even_parts

GUARD = 600  # seconds after which a test hangs


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_a_pipeline_keeps_the_order(count):
    parallel, where = cores(count), [set() for _ in range(4)]

    def stage(n):
        def call(core, x):
            where[n].add(parallel.cores.index(core))
            return [*x, n]

        return call

    found = parallel.pipeline([stage(n) for n in range(4)], ([x] for x in range(20)))
    assert found == [[x, 0, 1, 2, 3] for x in range(20)]
    blocks = even_parts(4, min(count, 4))
    assert where == [{core} for core, block in enumerate(blocks) for _ in block]
    assert parallel.pipeline([stage(0)], []) == []


def test_stages_of_a_pipeline_work_at_the_same_time():
    meet, size = threading.Barrier(3), 6

    def stage(n):
        def call(core, x):
            if 2 - n <= x < size - n:  # here all stages have work: inputs x, x - 1 and x - 2
                meet.wait(GUARD)
            return x

        return call

    assert cores(3).pipeline([stage(n) for n in range(3)], range(size)) == list(range(size))


def test_few_values_of_a_pipeline_wait():
    taken, done, most = 0, 0, 0

    def inputs():
        nonlocal taken, most
        for x in range(50):
            taken += 1
            most = max(most, taken - done)
            yield x

    def slow(core, x):
        nonlocal done
        time.sleep(0.001)
        done += 1

    cores(2).pipeline([lambda core, x: x, slow], inputs())
    assert 1 < most <= 1 + 2 + 1  # at the first stage, waiting, at the second stage


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_failed_stage_is_named_and_nothing_hangs(count, bad):
    def stage(n):
        def call(core, x):
            if n == bad and x == 30:
                raise ValueError(f"weights of layer {n} are missing")
            return x

        return call

    parallel = cores(count)
    core = next(n for n, part in enumerate(even_parts(3, count)) if bad in part)
    where = f"stage {bad} failed on core {core} of {count} at input 30"
    with rejects(ParallelError, f"{where}: weights of layer {bad} are missing"):
        parallel.pipeline([stage(n) for n in range(3)], range(200))
    assert parallel.pipeline([stage(n) for n in range(3)], range(20)) == list(range(20))


def test_an_input_that_fails_ends_a_pipeline():
    def inputs():
        yield from range(5)
        raise OSError("the camera is gone")

    with rejects(OSError, "the camera is gone"):
        cores(3).pipeline([lambda core, x: x] * 3, inputs())


def test_layers_in_a_pipeline():
    rng = np.random.default_rng(6)
    layers = [integers(rng, np.int8, 6, 6) for _ in range(3)]
    inputs = [integers(rng, np.int8, 2, 6) for _ in range(7)]

    def stage(weights):
        return lambda core, x: np.clip(core.matmul(x, weights) >> 6, -128, 127).astype(np.int8)

    found = cores(2).pipeline([stage(weights) for weights in layers], inputs)
    for x, y in zip(inputs, found, strict=True):
        for weights in layers:
            x = np.clip(exact(x, weights) >> 6, -128, 127).astype(np.int8)
        check_equal(y, x)


def test_rejects_what_is_no_stage():
    with rejects(TypeError, "stage 1 must be callable, not 'relu'"):
        cores(1).pipeline([abs, "relu"], [])
    with rejects(ValueError, "stages must be 1 or more, not 0"):
        cores(1).pipeline([], [1])
