"""BF16 cores in Amaranth's simulator: jobs of every kind against golden, word by word."""

import numpy as np
import pytest
from ml_dtypes import bfloat16
from tiers import tiers

from verif.amaranth_bench import checker, quiet, receive, send, simulate, ticks
from weft.commands import JobFlag, Status
from weft.config import Config
from weft.hw.core import Core
from weft.sim.scenario import Scenario

SMALL = {"dtype": "bf16", "a_words": 256, "b_words": 256, "c_words": 128}
CONFIGS = {
    "2x2": Config(rows=2, cols=2, **SMALL),
    "3x2-hop1-ftz": Config(rows=3, cols=2, hop=1, flush_subnormals=True, **SMALL),
    "1x3-narrow": Config(rows=1, cols=3, bytes_in=2, bytes_out=4, lanes=2, **SMALL),
}
ALL = pytest.mark.parametrize("config", tiers(CONFIGS, "3x2-hop1-ftz"))


def numbers(rng, *shape):
    """bfloat16 values: most near 1, some of the full range, some special."""
    near = rng.normal(size=shape).astype(bfloat16).view(np.uint16)
    wide = rng.integers(0, 1 << 16, shape).astype(np.uint16)
    special = rng.choice([0, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 1, 0x8001, 0x7F], shape)
    which = rng.random(shape)
    bits = np.where(which < 0.8, near, np.where(which < 0.98, wide, special))
    return bits.astype(np.uint16).view(bfloat16)


def sums(rng, *shape):
    """float32 values of the same kinds."""
    bits = numbers(rng, *shape).view(np.uint16).astype(np.uint32) << 16
    return (bits | rng.integers(0, 1 << 16, shape).astype(np.uint32)).view(np.float32)


def run(config, scenario, *, idle=0, stall=0, limit=40_000):
    core = Core(config)

    async def source(ctx):
        await send(ctx, core.commands, scenario.words, idle=idle / 100)

    async def sink(ctx):
        for seed, answer in enumerate(scenario.expected_results):
            answer.check(await receive(
                ctx, core.results, 10_000, stall=stall / 100, seed=seed,
                until=lambda word: word["last"],
            ))
        await quiet(ctx, core.results)
        assert not ctx.get(core.activity.busy)

    simulate(core, source, sink, background=[checker(core.results, "results")], limit=limit)


@ALL
@pytest.mark.parametrize("idle, stall", [
    (0, 60), (60, 0), pytest.param(0, 0, marks=pytest.mark.slow),
])
def test_jobs_of_any_number_of_tiles(config, idle, stall):
    rng = np.random.default_rng(1)
    scenario = Scenario(config)
    shapes = [(1, 1), (1, 8), (3, 3), (1, 3), (4, 4), (2, 1)]
    for tag, (down, across) in enumerate(shapes if not idle + stall else shapes[2:5]):
        m, n = down * config.rows - tag % 2 * (config.rows > 1), across * config.cols - tag % 2
        k = int(rng.choice([1, 2, 9, 16]))
        product = numbers(rng, m, k), numbers(rng, n, k)
        scenario.multiply(*product, feed=[(), (0, 1)][tag % 2], tag=tag)
        scenario.job(*product, tag=100 + tag, flags=JobFlag.ROUND)
    run(config, scenario, idle=idle, stall=stall)


@ALL
@pytest.mark.parametrize("stall", [0, 60])
def test_sums_start_from_c(config, stall):
    rng = np.random.default_rng(2)
    scenario = Scenario(config)
    for tag, (down, across) in enumerate([(1, 1), (2, 3), (3, 3), (1, 2)]):
        m, n = down * config.rows - tag % 2 * (config.rows > 1), across * config.cols
        product = numbers(rng, m, 1 + tag), numbers(rng, n, 1 + tag)
        for rows in (m, 1):
            c, page = sums(rng, rows, n), 30 * (rows == 1)
            scenario.load_c(c, page, gap=tag % 2)
            scenario.multiply(*product, c=c, c_page=page, gap=tag % 2, tag=tag)
        scenario.job(*product, tag=tag)
    run(config, scenario, stall=stall)


@ALL
def test_results_are_clamped_and_rounded(config):
    rng = np.random.default_rng(3)
    scenario = Scenario(config)
    for tag, across in enumerate((3, 1, 2, 4)):
        n = across * config.cols
        product = numbers(rng, config.rows + 1, 5), numbers(rng, n, 5)
        low = rng.normal(size=n).astype(np.float32)
        scenario.load_parameters([(x, x + abs(x)) for x in low])
        for flags in (JobFlag.CLAMP, JobFlag.CLAMP | JobFlag.ROUND, JobFlag(0)):
            scenario.multiply(*product, flags=flags, tag=tag)
    run(config, scenario, stall=30)


@ALL
def test_chains_of_one_pass(config):
    rng = np.random.default_rng(4)
    scenario = Scenario(config)
    n = 7 * config.cols
    c = sums(rng, config.rows, n)
    scenario.load_c(c)
    for link in range(4):
        flags = JobFlag.ACCUMULATE if link else JobFlag(0)
        flags |= JobFlag.KEEP if link < 3 else JobFlag(0)
        k = 3 + link
        product = numbers(rng, config.rows, k), numbers(rng, n, k)
        scenario.multiply(*product, flags=flags, tag=link, c=None if link else c)
    scenario.multiply(numbers(rng, 2 * config.rows, 4), numbers(rng, 2 * config.cols, 4), tag=9)
    run(config, scenario)


@ALL
@pytest.mark.parametrize("delay", [-9, 0, 1, 3, 30])
def test_the_job_after_an_abort_is_correct(config, delay):
    rng = np.random.default_rng(5)
    scenario = Scenario(config)
    product = numbers(rng, 3 * config.rows, 16), numbers(rng, 4 * config.cols, 16)
    for side in range(2):
        scenario.load(side, product[side])
    for tag in range(3):
        scenario.job(*product, tag=tag)
    core = Core(config)

    async def source(ctx):
        await send(ctx, core.commands, scenario.words)

    async def abort(ctx):
        while not (await ctx.tick().sample(core.activity.active))[-1]:
            pass
        await ticks(ctx, 16 * 8 + delay)
        ctx.set(core.abort, 1)
        await ctx.tick()
        ctx.set(core.abort, 0)

    async def sink(ctx):
        for tag, answer in enumerate(scenario.expected_results):
            words = await receive(ctx, core.results, 10_000, until=lambda word: word["last"])
            answer.check(words, statuses={Status.ABORTED} if not tag else None)
        await quiet(ctx, core.results)
        assert not ctx.get(core.activity.busy)

    simulate(core, source, abort, sink, background=[checker(core.results, "results")])
