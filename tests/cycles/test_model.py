"""Skipped periods in the cycle model: all numbers equal a computation of every step."""

import numpy as np
import pytest
from command_sequences import draw

import weft.cycles.array
import weft.cycles.output
from weft.commands import Job, JobFlag, Load, LoadFlag
from weft.config import Config
from weft.cycles import predict
from weft.cycles.output import OutputStage
from weft.geometry import operands
from weft.regress.case import random_config

SEED = 20263
FED = JobFlag.FEED_A, JobFlag.FEED_B


def every_step(stages, items, step, **_):
    for item in items:
        step(item)


def every_chunk(output, time, count, kind):
    for _ in range(count):
        output.send_chunk(time, kind)


@pytest.fixture
def plain(monkeypatch):
    """`predict` without skipped periods."""

    def run(config, commands):
        with monkeypatch.context() as patch:
            patch.setattr(weft.cycles.array, "repeat", every_step)
            patch.setattr(weft.cycles.output, "repeat", every_step)
            patch.setattr(OutputStage, "send_chunks", every_chunk)
            return predict(config, commands)

    return run


def test_equals_every_step(plain, passes):
    random = np.random.default_rng(SEED)
    configs = [random_config(random) for _ in range(50)]
    computed = [0, 0]
    for number in range(1000):
        config = configs[number % len(configs)]
        deepest = int(random.choice([1, 40, 4000]))
        commands = draw(config, random, tiles=16, deepest=deepest, repeat=0.5)
        tiles = sum(
            -(-c.m // config.rows) * -(-c.n // config.cols) for c in commands if isinstance(c, Job)
        )
        if tiles * config.rows * -(-config.cols // config.lanes) > 1200:
            continue  # too many steps for a test
        found = []
        for n, model in enumerate((predict, plain)):
            passes.clear()
            found.append(model(config, commands))
            computed[n] += len(passes)
        assert found[0] == found[1], (number, config, commands)
    assert computed[0] < 0.8 * computed[1]


def test_equals_every_step_with_a_slightly_slower_output(plain, passes):
    # Tiles of 31 steps and 32 words: the result buffer is full after some hundred of them.
    config = Config(rows=4, cols=4, depth=2, bytes_out=2, requantize="none", lanes=4)
    job = Job(4 * 40, 4 * 20, 62, 0, 2, 80, 0, 2, 40)
    assert plain(config, [job, job]) == predict(config, [job, job])
    assert len(passes) < 2 * 800 + 200


@pytest.mark.parametrize("config", [
    Config(), Config(dtype="bf16"), Config(requantize="none", drain="folded"),
    Config(rows=5, cols=3, depth=2, bytes_out=4, lanes=2),
])
@pytest.mark.parametrize("flags", [JobFlag(0), JobFlag.FEED_A, JobFlag.FEED_A | JobFlag.FEED_B])
@pytest.mark.parametrize("partial", [0, 1])
def test_a_job_of_many_tiles_needs_few_steps(config, flags, partial, passes):
    a, b = operands(config)
    m, n, k = 200 * a.edge - partial, 150 * b.edge - partial, 16 * config.depth
    loads = [Load(0, 0, 1, 1, 16, LoadFlag.FEED), Load(1, 0, 1, 150, 16, LoadFlag.FEED),
             Load(0, 1, 1, 199, 16, LoadFlag.FEED)]
    loads = [load for load in loads if FED[load.operand] in flags]
    prediction = predict(config, [Job(m, n, k, 0, 1, 200, 0, 1, 150, flags=flags), *loads])
    assert prediction.active == 200 * 150 * 16
    assert prediction.cycles >= prediction.active
    assert len(passes) < 300


def test_predicts_the_end_of_each_job():
    jobs = [Job(8, 8, 8, 0, 1, 1, 0, 1, 1)] * 3
    assert len(predict(Config(), jobs).ends) == 3
