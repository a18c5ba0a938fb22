"""Passes of several tiles: cores whose MAC cell holds several sums."""

import numpy as np
import pytest

from verif.amaranth_bench import checker, quiet, receive, send, simulate
from verif.interleaved_mac import interleaved_mac
from weft.commands import JobFlag, Status
from weft.config import Config
from weft.hw.control.sequencer import Sequencer
from weft.hw.core import Core
from weft.sim.scenario import Scenario

SMALL = {"a_words": 64, "b_words": 128}
CORES = {
    "2x2x1-slots3": (Config(rows=2, cols=2, depth=1, **SMALL), interleaved_mac(3, 4)),
    "3x2x2-slots3": (Config(rows=3, cols=2, depth=2, hop=1, **SMALL), interleaved_mac(3, 5)),
    "1x3x1-slots4": (Config(rows=1, cols=3, depth=1, bytes_out=4, **SMALL), interleaved_mac(4, 7)),
}
ALL = pytest.mark.parametrize("config, cell", [
    pytest.param(*core, id=name, marks=pytest.mark.slow)
    for name, core in CORES.items()
])


def lines(rng, count, k):
    return rng.integers(-128, 128, (count, k)).astype(np.int8)


def run(core, scenario, *, idle=0, stall=0):
    async def source(ctx):
        await send(ctx, core.commands, scenario.words, idle=idle / 100)

    async def sink(ctx):
        for seed, answer in enumerate(scenario.expected_results):
            answer.check(await job(ctx, core, stall, seed))
        await quiet(ctx, core.results)
        assert not ctx.get(core.activity.busy)

    simulate(core, source, sink, background=[checker(core.results, "results")], limit=20_000)


async def job(ctx, core, stall=0, seed=0):
    """All result words of one job."""
    return await receive(
        ctx, core.results, 10_000, stall=stall / 100, seed=seed, until=lambda word: word["last"]
    )


@ALL
@pytest.mark.parametrize("idle, stall", [(0, 0), (0, 50), (50, 0), (90, 90)])
def test_jobs_of_any_number_of_tiles(config, cell, idle, stall):
    # 1 to 9 tiles: full and partial passes, single passes and several in a row.
    rng = np.random.default_rng(1)
    scenario = Scenario(config)
    shapes = [(1, 1), (1, 3), (2, 2), (1, 2), (3, 3), (2, 1), (3, 1), (2, 3)]
    for tag, (down, across) in enumerate(shapes if not idle + stall else shapes[2:6]):
        m, n = down * config.rows - tag % 2 * (config.rows > 1), across * config.cols - tag // 2 % 2
        k = int(rng.choice([1, 2, 3, 9, 16]))
        product = lines(rng, m, k), lines(rng, n, k)
        scenario.multiply(*product, feed=[(), (0, 1)][tag % 2], tag=tag)
        scenario.job(*product, tag=100 + tag)
    run(Core(config, mac=cell), scenario, idle=idle, stall=stall)


@ALL
def test_each_tile_of_a_pass_has_its_own_parameters(config, cell):
    rng = np.random.default_rng(4)
    scenario = Scenario(config)
    for tag, across in enumerate((3, 1, 2, 4)):
        n = across * config.cols
        product = lines(rng, config.rows + 1, 5), lines(rng, n, 5)
        columns = [(int(x), 1 << 30, -5, 0, 3, -128, 127) for x in rng.integers(-9999, 9999, n)]
        scenario.load_parameters(columns)
        scenario.multiply(*product, flags=JobFlag.REQUANTIZE, tag=tag)
    run(Core(config, mac=cell), scenario, stall=30)


@ALL
@pytest.mark.parametrize("idle", [0, 80])
def test_chains_of_one_pass(config, cell, idle):
    # Sums stay in their slots, for any delay of the next job.
    rng = np.random.default_rng(2)
    scenario = Scenario(config)
    for across in (1, cell.SLOTS, 2):
        n = across * config.cols
        for link in range(4):
            flags = JobFlag.ACCUMULATE if link else JobFlag(0)
            flags |= JobFlag.KEEP if link < 3 else JobFlag(0)
            product = lines(rng, config.rows, 5 + link), lines(rng, n, 5 + link)
            pages = link % 2, link % 2 * cell.SLOTS
            scenario.multiply(*product, pages=pages, flags=flags, tag=10 * across + link)
        scenario.multiply(lines(rng, 2 * config.rows, 4), lines(rng, 2 * config.cols, 4), tag=9)
    run(Core(config, mac=cell), scenario, idle=idle)


MOMENTS = {  # steps before the abort, by the slots and words of a pass
    "first-step": lambda slots, words: 2,
    "first-pass": lambda slots, words: slots * 3 + 1,
    "end-of-a-pass": lambda slots, words: slots * words - 1,
    "between-passes": lambda slots, words: slots * words,
    "next-pass": lambda slots, words: slots * (words + 1) + 1,
    "before-the-last-round": lambda slots, words: slots * (2 * words - 1) - 1,
    "last-round": lambda slots, words: slots * (2 * words - 1),
    "last-step": lambda slots, words: slots * 2 * words - 1,
    "next-job": lambda slots, words: slots * 2 * words,
    "in-the-next-job": lambda slots, words: slots * 2 * words + 1,
    "last-job": lambda slots, words: slots * 7 * words + 2,
}


@ALL
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_an_abort_ends_the_active_job(config, cell, moment):
    # Four jobs of two passes each; the next pass is built while one runs.
    rng = np.random.default_rng(1)
    scenario = Scenario(config)
    product = lines(rng, 2 * config.rows, 16), lines(rng, cell.SLOTS * config.cols, 16)
    slots, words = cell.SLOTS, 16 // config.depth
    for side in range(2):
        scenario.load(side, product[side])
    for tag in range(4):
        scenario.job(*product, tag=tag)
    core = Core(config, mac=cell)
    done = moment(slots, words)
    active, left = done // (2 * slots * words), -done % (2 * slots * words)
    ended = None if 0 < left <= slots else active  # in its last round it is too late

    async def source(ctx):
        await send(ctx, core.commands, scenario.words)

    async def abort(ctx):
        steps = 0
        while steps < done - Sequencer.LATENCY:
            steps += (await ctx.tick().sample(core.activity.active))[-1]
        ctx.set(core.abort, 1)
        await ctx.tick()
        ctx.set(core.abort, 0)

    async def sink(ctx):
        for tag, answer in enumerate(scenario.expected_results):
            taken = await job(ctx, core)
            answer.check(taken, statuses={Status.ABORTED if tag == ended else Status(0)})
            # Passes whose last round had started are sent, complete; nothing else is sent.
            complete = -(-done // slots) // words % 2 if tag == ended else 2
            assert len(taken) - (tag == ended) == len(answer.words) * complete // 2
        await quiet(ctx, core.results)
        assert not ctx.get(core.activity.busy)

    simulate(core, source, abort, sink, background=[checker(core.results, "results")])


@ALL
def test_full_rate_is_the_peak(config, cell):
    # Full passes of resident operands: a step in every cycle, from the first to the last.
    rng = np.random.default_rng(3)
    scenario = Scenario(config)
    k = 16 * config.depth
    product = lines(rng, 3 * config.rows, k), lines(rng, 4 * config.cols, k)
    for side in range(2):
        scenario.load(side, product[side])
    scenario.job(*product, tag=1)
    core = Core(config, mac=cell)
    steps = []

    async def source(ctx):
        await send(ctx, core.commands, scenario.words)

    async def watch(ctx):
        while True:
            steps.append((await ctx.tick().sample(core.activity.active))[-1])

    async def sink(ctx):
        scenario.expected_results[0].check(await job(ctx, core))

    simulate(core, source, sink, background=[watch])
    first, last = steps.index(1), len(steps) - steps[::-1].index(1)
    assert sum(steps) == 12 * 16
    assert last - first <= sum(steps) + cell.SLOTS * 4
