"""Skipped periods in the cycle model: all numbers equal a computation of every step."""

import random

import pytest

import weft.cycles.output
import weft.cycles.tiles
from weft.commands import Job, JobFlag, Load, LoadFlag, Region, epilogue_flags
from weft.config import Config, ConfigError
from weft.cycles import predict
from weft.cycles.array import Array
from weft.cycles.output import OutputStage
from weft.geometry import memories, operands
from weft.timing import Latencies

SEED = 20263
FED = JobFlag.FEED_A, JobFlag.FEED_B


def every_step(stages, items, step, **_):
    for item in items:
        step(item)


def every_chunk(output, time, count, kind):
    for _ in range(count):
        output.chunk(time, kind)


@pytest.fixture
def plain(monkeypatch):
    """`predict` without skipped periods."""

    def run(config, commands):
        with monkeypatch.context() as patch:
            patch.setattr(weft.cycles.tiles, "repeat", every_step)
            patch.setattr(weft.cycles.output, "repeat", every_step)
            patch.setattr(OutputStage, "chunks", every_chunk)
            return predict(config, commands)

    return run


@pytest.fixture
def passes(monkeypatch):
    """A list with one item for each computed pass."""
    found, run = [], Array.run
    monkeypatch.setattr(Array, "run", lambda *args: found.append(1) or run(*args))
    return found


def draw_config(draw):
    while True:
        dtype = draw.choice(["int8", "bf16"])
        fields = {
            "dtype": dtype, "rows": draw.randint(1, 5), "cols": draw.randint(1, 5),
            "hop": draw.randint(1, 4), "lanes": draw.choice([1, 1, 2, 4, 8]),
            "bytes_in": draw.choice([2, 4, 16, 64]), "bytes_out": draw.choice([1, 2, 4, 16, 64]),
            "jobs": draw.choice([2, 4, 8]), "a_words": draw.choice([64, 512]),
            "b_words": draw.choice([64, 512]),
        }
        if dtype == "int8":
            fields |= {
                "depth": draw.choice([1, 2, 3, 4]), "scale_cycles": draw.choice([1, 1, 2, 32]),
                "drain": draw.choice(["overlapped", "folded"]),
                "requantize": draw.choice(["none", "tflite", "single", "onnx"]),
                "activation": draw.choice(["none", "table"]),
                "target": draw.choice(["generic", "ecp5", "ice40up"]),
            }
        else:
            fields |= {
                "c_words": draw.choice([0, 64]), "activation": draw.choice(["none", "clamp"]),
            }
        try:
            return Config(**fields)
        except ConfigError:
            continue


def draw_commands(draw, config):
    """Random jobs of up to a few hundred tiles: fed, resident, kept, with epilogue, rejected."""
    a, b = operands(config)
    slots = Latencies.of(config).slots
    commands = []
    sizes = k = None
    for tag in range(draw.randint(1, 4)):
        if sizes is None or draw.random() < 0.5:
            deepest = min(a.words, b.words) * a.depth
            k = draw.choice([1, draw.randint(1, deepest), draw.randint(1, min(deepest, 40))])
            sizes = [
                draw.choice([1, draw.randint(1, 12 * o.edge), o.edge * draw.randint(1, 20)])
                for o in (a, b)
            ]
        flags = JobFlag(0)
        for flag in (*FED, *epilogue_flags(config)):
            flags |= flag if draw.random() < 0.5 else 0
        flags |= JobFlag.ACCUMULATE if draw.random() < 0.1 else 0
        if draw.random() < 0.15:
            flags |= JobFlag.KEEP
            sizes = [min(sizes[0], a.edge), min(sizes[1], slots * b.edge)]
        pitch, words = a.panel_pages(k), a.panel_words(k)
        sizes = [min(n, o.pages // pitch * o.edge) for n, o in zip(sizes, (a, b), strict=True)]
        panels = [o.panels(n) for n, o in zip(sizes, (a, b), strict=True)]
        pages = [
            draw.randint(0, o.pages - n * pitch) for n, o in zip(panels, (a, b), strict=True)
        ]
        if draw.random() < 0.2:
            commands.append(Load(Region.A, pages[0], pitch, 1, words))
        if Region.PARAMETERS in memories(config) and draw.random() < 0.3:
            chunks = -(-config.cols // config.lanes)
            commands.append(Load(Region.PARAMETERS, pages[1], pitch, panels[1], chunks))
        if Region.TABLE in memories(config) and draw.random() < 0.1:
            commands.append(Load(Region.TABLE, 0, 1, 1, 256))
        c = {}
        if config.c_words and JobFlag.ACCUMULATE not in flags and draw.random() < 0.4:
            flags |= JobFlag.PRELOAD | (JobFlag.BROADCAST if draw.random() < 0.5 else 0)
            c = {"c_page": 0, "c_pitch": 1, "c_pages": min(panels[1], config.c_words)}
            commands.append(Load(Region.C, 0, 1, c["c_pages"], 1))
        commands.append(Job(
            0 if draw.random() < 0.03 else sizes[0], sizes[1], k, pages[0], pitch,
            panels[0] * pitch, pages[1], pitch, panels[1] * pitch, **c, tag=tag, flags=flags,
        ))
        commands += draw_feeds(draw, flags, panels, pages, pitch, words)
    return commands


def draw_feeds(draw, flags, panels, pages, pitch, words):
    """The loads that feed a job, each operand in parts, interleaved at random."""
    parts = []
    for side, flag in enumerate(FED):
        loads, first = [], 0
        while flag in flags and first < panels[side]:
            count = draw.choice([1, panels[side] - first])
            page = pages[side] + first * pitch
            loads.append(Load(side, page, pitch, count, words, LoadFlag.FEED))
            first += count
        parts.append(loads)
    while any(parts):
        yield draw.choice([loads for loads in parts if loads]).pop(0)


def test_equals_every_step(plain, passes):
    draw = random.Random(SEED)
    computed = [0, 0]
    for number in range(1500):
        config = draw_config(draw)
        commands = draw_commands(draw, config)
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
