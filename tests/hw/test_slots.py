"""Passes of several tiles: cores whose MAC cell holds several sums."""

import functools

import pytest

from verif.core_bench import run
from verif.interleaved_mac import interleaved_mac
from weft.commands import JobFlag, Status
from weft.config import Config
from weft.hw.control.sequencer import Sequencer
from weft.hw.core import Core
from weft.sim.scenario import A, B, Scenario

SMALL = {"a_words": 64, "b_words": 128}
# All tests of a core use the same one: its elaboration takes longer than most simulations.
core_of = functools.cache(lambda config, cell: Core(config, mac=cell))
CORES = {
    "2x2x1-slots3": (Config(rows=2, cols=2, depth=1, **SMALL), interleaved_mac(3, 4)),
    "3x2x2-slots3": (Config(rows=3, cols=2, depth=2, hop=1, **SMALL), interleaved_mac(3, 5)),
    "1x3x1-slots4": (Config(rows=1, cols=3, depth=1, bytes_out=4, **SMALL), interleaved_mac(4, 7)),
}
LONG = "2x2x1-slots3", "3x2x2-slots3"
ALL = pytest.mark.parametrize("config, cell", [
    pytest.param(*core, id=name, marks=pytest.mark.long if name in LONG else pytest.mark.slow)
    for name, core in CORES.items()
])


@ALL
@pytest.mark.parametrize("idle, stall", [(0, 0), (0, 0.5), (0.5, 0), (0.9, 0.9)])
def test_jobs_of_any_number_of_tiles(config, cell, idle, stall):
    # 1 to 9 tiles: full and partial passes, single passes and several in a row.
    scenario = Scenario(config)
    shapes = [(1, 1), (1, 3), (2, 2), (1, 2), (3, 3), (2, 1), (3, 1), (2, 3)]
    for tag, (down, across) in enumerate(shapes if not idle + stall else shapes[2:6]):
        m, n = down * config.rows - tag % 2 * (config.rows > 1), across * config.cols - tag // 2 % 2
        k = int(scenario.rng.choice([1, 2, 3, 9, 16]))
        placed = scenario.multiply(*scenario.operands(m, n, k), feed=[(), (A, B)][tag % 2])
        scenario.job(*placed)
    run(core_of(config, cell), scenario, idle=idle, stall=stall)


@ALL
def test_each_tile_of_a_pass_has_its_own_parameters(config, cell):
    scenario = Scenario(config)
    for across in (3, 1, 2, 4):
        a, b = scenario.operands(config.rows + 1, across * config.cols, 5)
        biases = scenario.rng.integers(-9999, 9999, len(b))
        columns = [(bias, 1 << 30, -5, 0, 3, -128, 127) for bias in biases]
        scenario.multiply(a, b, parameters=columns, flags=JobFlag.REQUANTIZE)
    run(core_of(config, cell), scenario, stall=0.3)


@ALL
@pytest.mark.parametrize("idle", [0, 0.8])
def test_chains_of_one_pass(config, cell, idle):
    # Sums stay in their slots, for any delay of the next job.
    scenario = Scenario(config)
    for across in (1, cell.SLOTS, 2):
        for link in range(4):
            flags = JobFlag.ACCUMULATE if link else JobFlag(0)
            flags |= JobFlag.KEEP if link < 3 else JobFlag(0)
            product = scenario.operands(config.rows, across * config.cols, 5 + link)
            scenario.multiply(*product, flags=flags)
        scenario.multiply(*scenario.operands(2 * config.rows, 2 * config.cols, 4))
    run(core_of(config, cell), scenario, idle=idle)


def resident(config, m, n, k, *, jobs):
    """Some jobs on the same resident operands, without gaps between their panels."""
    scenario = Scenario(config)
    a, b = scenario.operands(m, n, k)
    placed = scenario.place(A, a, 0, gap=0), scenario.place(B, b, 0, gap=0)
    scenario.load(*placed)
    for _ in range(jobs):
        scenario.job(*placed)
    return scenario


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
    scenario = resident(config, 2 * config.rows, cell.SLOTS * config.cols, 16, jobs=4)
    slots, words = cell.SLOTS, 16 // config.depth
    core = core_of(config, cell)
    done = moment(slots, words)
    active, left = done // (2 * slots * words), -done % (2 * slots * words)
    ended = None if 0 < left <= slots else active  # in its last round it is too late

    if ended is not None:
        scenario.scoreboards[ended].statuses = {Status.ABORTED}

    async def abort(ctx):
        steps = 0
        while steps < done - Sequencer.LATENCY:
            steps += (await ctx.tick().sample(core.activity.active))[-1]
        ctx.set(core.abort, 1)
        await ctx.tick()
        ctx.set(core.abort, 0)

    run(core, scenario, abort)
    if ended is not None:
        # Passes whose last round had started are sent, complete; nothing else is sent.
        scoreboard = scenario.scoreboards[ended]
        complete = -(-done // slots) // words % 2
        assert scoreboard.taken == len(scoreboard.words) * complete // 2


@ALL
def test_full_rate_is_the_peak(config, cell):
    # Full passes of resident operands: a step in every cycle, from the first to the last.
    scenario = resident(config, 3 * config.rows, 4 * config.cols, 16 * config.depth, jobs=1)
    core, steps = core_of(config, cell), []

    async def watch(ctx):
        while True:
            steps.append((await ctx.tick().sample(core.activity.active))[-1])

    run(core, scenario, background=[watch])
    first, last = steps.index(1), len(steps) - steps[::-1].index(1)
    assert sum(steps) == 12 * 16
    assert last - first <= sum(steps) + cell.SLOTS * 4
