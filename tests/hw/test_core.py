"""Jobs through small cores, against int64 products of numpy."""

import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal
from tiers import tiers

from verif.amaranth_bench import checker, quiet, receive, send, simulate, ticks
from weft.commands import HEADER_BYTES, JobFlag, Load, LoadFlag, Status
from weft.config import Config
from weft.geometry import operands
from weft.hw.core import Core
from weft.registers import LATENCY, REGISTERS
from weft.sim.scenario import Scenario

SMALL = {"a_words": 64, "b_words": 128}
CONFIGS = {
    "1x1x1": Config(
        rows=1, cols=1, depth=1, lanes=1, bytes_in=1, bytes_out=1, jobs=2, a_words=32, b_words=64
    ),
    "3x5x2": Config(rows=3, cols=5, depth=2, bytes_in=16, bytes_out=8, **SMALL),
    "1x4x8": Config(rows=1, cols=4, depth=8, hop=1, lanes=2, bytes_in=64, **SMALL),
    "4x2x1": Config(
        rows=4, cols=2, depth=1, hop=3, requantize="none", bytes_in=4, bytes_out=2, **SMALL
    ),
    "2x2x2-fip": Config(
        rows=2, cols=2, depth=2, multiplier="fip", bytes_in=2, bytes_out=4, **SMALL
    ),
    "3x5x2-fip": Config(rows=3, cols=5, depth=2, multiplier="fip", hop=1, bytes_out=64, **SMALL),
}
CONFIGS["3x2x2-folded"] = Config(
    rows=3, cols=2, depth=2, drain="folded", multiplier="fip", lanes=2, bytes_out=8, **SMALL
)
CONFIGS["2x3x2-onnx"] = Config(
    rows=2, cols=3, depth=2, requantize="onnx", b_zero_point="column", lanes=2, bytes_in=4, **SMALL
)
FLOWS = tiers({
    f"idle{idle}-stall{stall}": (idle, stall) for idle in (0, 50, 90) for stall in (0, 50, 90)
}, "idle50-stall90")
ALL = pytest.mark.parametrize("config", tiers(CONFIGS, "1x1x1", "3x2x2-folded"))
SUBSET_NAMES = ["1x1x1", "2x2x2-fip", "3x2x2-folded"]
SUBSET = pytest.mark.parametrize(
    "config", tiers({name: CONFIGS[name] for name in SUBSET_NAMES}, "1x1x1", "3x2x2-folded")
)


def lines(rng, count, k):
    """int8 values of the full range, extremes often."""
    values = rng.integers(-128, 128, (count, k))
    extreme = rng.random((count, k)) < 0.3
    return np.where(extreme, rng.choice([-128, 127], (count, k)), values).astype(np.int8)


def random_parameters(rng, config, columns):
    """Random parameters of the epilogue for ``columns`` columns of B."""
    for _ in range(columns):
        multiplier, shift = int(rng.integers(1 << 30, 1 << 31)), int(rng.integers(-12, 1))
        if config.requantize == "onnx":
            multiplier = int(np.float32(rng.uniform(0.001, 0.5)).view(np.uint32))
        bias, zero = int(rng.integers(-9999, 9999)), int(rng.integers(-128, 128))
        yield bias, multiplier, shift, int(rng.integers(-128, 128)), zero, -128, 127


def random_program(config, rng, jobs):
    """Jobs of random shapes that fit, with operands resident, loaded before or fed after."""
    scenario = Scenario(config)
    a_geometry, b_geometry = operands(config)
    operands_before = None
    for tag in range(jobs):
        k = int(rng.choice([1, 2, rng.integers(1, 4 * config.depth + 2), 17 * config.depth]))
        panels = [g.pages // g.panel_pages(k) for g in (a_geometry, b_geometry)]
        m = int(rng.integers(1, min(panels[0], 3) * config.rows + 1))
        n = int(rng.integers(1, min(panels[1], 3) * config.cols + 1))
        kind = rng.integers(4)
        if kind == 0 and operands_before:
            scenario.job(*operands_before, tag=tag)  # they are still in the buffers
            continue
        operands_before = lines(rng, m, k), lines(rng, n, k)
        fed = [(), (0, 1), (1,), (0,)][kind]
        scenario.multiply(*operands_before, feed=fed, tag=tag)
    return scenario


async def answers(ctx, core, scenario, stall=0, **rules):
    """Takes all expected results, and checks that no more come."""
    for seed, answer in enumerate(scenario.expected_results):
        taken = await receive(
            ctx, core.results, 10_000, stall=stall / 100, seed=seed, until=lambda word: word["last"]
        )
        answer.check(taken, **rules)
    await quiet(ctx, core.results)
    assert not ctx.get(core.activity.busy)


def run(core, scenario, *, idle=0, stall=0, limit=60_000):
    async def source(ctx):
        await send(ctx, core.commands, scenario.words, idle=idle / 100, seed=1)

    async def sink(ctx):
        await answers(ctx, core, scenario, stall)

    simulate(core, source, sink, background=checkers(core), limit=limit)


def checkers(core):
    return [checker(core.results, "results"), checker(core.commands, "commands")]


@ALL
def test_jobs_of_all_shapes(config):
    rng = np.random.default_rng(1)
    run(Core(config), random_program(config, rng, 14))


@pytest.mark.parametrize("flow", FLOWS)
def test_idle_and_stalled_streams(flow):
    idle, stall = flow
    config = CONFIGS["3x5x2"]
    rng = np.random.default_rng(idle + stall)
    run(Core(config), random_program(config, rng, 6), idle=idle, stall=stall)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["1x1x1", "3x5x2-fip"])
@pytest.mark.parametrize("idle, stall", [(90, 50), (50, 90)])
def test_idle_and_stalled_streams_of_other_cores(name, idle, stall):
    config = CONFIGS[name]
    rng = np.random.default_rng(idle)
    run(Core(config), random_program(config, rng, 3), idle=idle, stall=stall)


@pytest.mark.parametrize("name", [
    pytest.param("2x2x2-fip", marks=pytest.mark.slow),
    "2x3x2-onnx",
])
@pytest.mark.parametrize("idle, stall", [(0, 0), (50, 90)])
def test_requantized_results(name, idle, stall):
    config = CONFIGS[name]
    rng = np.random.default_rng(idle)
    scenario = Scenario(config)
    scenario.load_table(rng.integers(0, 256, 256).tolist())
    for tag in range(6):
        n, k = int(rng.integers(1, 3 * config.cols)), int(rng.integers(1, 20))
        pitch = -(-k // (16 * config.depth))
        page = tag % 2 * 3
        scenario.load_parameters(list(random_parameters(rng, config, n)), page, pitch)
        flags = JobFlag.REQUANTIZE | (JobFlag.TABLE if tag % 3 else JobFlag(0))
        product = lines(rng, config.rows + tag % 2, k), lines(rng, n, k)
        fed = [(), (0, 1)][tag % 2]
        scenario.multiply(*product, pages=(0, page), feed=fed, flags=flags, tag=tag)
        scenario.job(*product, pages=(0, page), tag=100 + tag)
    run(Core(config), scenario, idle=idle, stall=stall)


@ALL
def test_short_jobs_back_to_back(config):
    rng = np.random.default_rng(2)
    scenario = Scenario(config)
    a, b = lines(rng, 2 * config.rows, 20), lines(rng, config.cols + 1, 20)
    fits = min(20, 16 * config.depth)
    for k in range(1, fits + 1):
        for side, x in enumerate((a, b)):
            scenario.load(side, x[:, :k])
        scenario.job(a[:, :k], b[:, :k], tag=k)
        scenario.job(a[:1, :k], b[:, :k], tag=100 + k)
    run(Core(config), scenario)


@SUBSET
def test_extremes_in_chains_of_jobs(config):
    scenario = Scenario(config)
    k = 16 * config.depth
    low = [np.full((edge, k), -128, np.int8) for edge in (config.rows, config.cols)]
    links = 1024 // k + 1
    for link in range(links):
        flags = JobFlag.ACCUMULATE if link else JobFlag(0)
        flags |= JobFlag.KEEP if link < links - 1 else JobFlag(0)
        more = LoadFlag.CONTINUE if link else LoadFlag(0)
        for side in range(2):  # into other pages, so that it loads while the job before runs
            scenario.load(side, low[side], link % 2, more)
        scenario.job(*low, (link % 2, link % 2), flags, tag=link)
    rng = np.random.default_rng(3)
    scenario.multiply(lines(rng, 1, k), lines(rng, 1, k), tag=99)
    run(Core(config), scenario, stall=50)
    assert scenario.expected_results[0].words[0][0] & 0xFF == links * k * 128 * 128 & 0xFF


@SUBSET
def test_unused_held_sums_do_not_leak(config):
    # A job holds its sums, and the next one does not accumulate: with one tile and with several.
    rng = np.random.default_rng(8)
    scenario = Scenario(config)
    k = 3 * config.depth
    product = lines(rng, config.rows, k), lines(rng, config.cols, k)
    more = np.concatenate([product[0]] * 2), product[1]
    for side in range(2):
        scenario.load(side, more[side])
    for tag in range(0, 12, 3):
        scenario.job(*product, flags=JobFlag.KEEP, tag=tag)
        scenario.job(*(more if tag % 2 else product), tag=tag + 1)
        scenario.job(*product, tag=tag + 2)
    run(Core(config), scenario)


@SUBSET
def test_rejects_invalid_jobs(config):
    rng = np.random.default_rng(4)
    scenario = Scenario(config)
    product = lines(rng, config.rows, 3), lines(rng, config.cols, 3)
    scenario.multiply(*product, tag=1)
    a, b = operands(config)
    limits = {"m": a.pages * a.edge, "n": b.pages * b.edge, "k": min(a.words, b.words) * a.depth}
    for name, limit in limits.items():
        scenario.reject(tag=2, **{name: 0})
        scenario.reject(tag=3, **{name: limit + 1})
    scenario.reject(tag=4, flags=JobFlag(64))
    scenario.reject(tag=5, flags=JobFlag.KEEP, m=config.rows + 1)
    scenario.send(bytes(HEADER_BYTES))
    scenario.job(*product, tag=6)
    core = Core(config)
    errors = []

    async def source(ctx):
        await send(ctx, core.commands, scenario.words)

    async def sink(ctx):
        await answers(ctx, core, scenario)
        errors.append(await register(ctx, core, "errors"))

    simulate(core, source, sink, background=checkers(core))
    assert errors == [1]


async def register(ctx, core, name):
    ctx.set(core.reg_address, REGISTERS.index(name))
    await ctx.tick().repeat(LATENCY)
    return ctx.get(core.reg_data)


@SUBSET
@pytest.mark.parametrize("moment", [1, 9, 30])
def test_an_abort_ends_one_job(config, moment):
    # Resident operands; the abort comes ``moment`` cycles after the first step.
    rng = np.random.default_rng(moment)
    k = 16 * config.depth
    scenario = Scenario(config)
    product = lines(rng, 2 * config.rows, k), lines(rng, 2 * config.cols, k)
    for side in range(2):
        scenario.load(side, product[side])
    scenario.job(*product, tag=1)
    scenario.job(*product, tag=2)
    core = Core(config)

    async def source(ctx):
        await send(ctx, core.commands, scenario.words)

    async def abort(ctx):
        while not (await ctx.tick().sample(core.activity.active))[-1]:
            pass
        await ticks(ctx, moment)
        ctx.set(core.abort, 1)
        await ctx.tick()
        ctx.set(core.abort, 0)

    async def sink(ctx):
        first, second = scenario.expected_results
        taken = await receive(ctx, core.results, 10_000, until=lambda word: word["last"])
        first.check(taken, statuses={Status.ABORTED})
        taken = await receive(ctx, core.results, 10_000, until=lambda word: word["last"])
        second.check(taken)
        await quiet(ctx, core.results)
        assert not ctx.get(core.activity.busy)

    simulate(core, source, abort, sink, background=checkers(core))


@SUBSET
def test_an_abort_ends_a_job_without_operands(config):
    rng = np.random.default_rng(5)
    product = lines(rng, config.rows, 3), lines(rng, config.cols, 3)
    scenario = Scenario(config)
    scenario.job(*product, flags=JobFlag.FEED_A, tag=1)
    scenario.expected_results[0].status = Status.ABORTED
    scenario.multiply(*product, pages=(1, 1), tag=2)
    core = Core(config)

    async def source(ctx):
        await send(ctx, core.commands, scenario.words)

    async def abort(ctx):
        ctx.set(core.abort, 1)  # without a job it has no effect
        await ctx.tick()
        ctx.set(core.abort, 0)
        await ticks(ctx, 300)
        assert ctx.get(core.activity.starved)
        ctx.set(core.abort, 1)
        await ctx.tick()
        ctx.set(core.abort, 0)

    async def sink(ctx):
        await answers(ctx, core, scenario)

    simulate(core, source, abort, sink, background=checkers(core))


@SUBSET
@pytest.mark.parametrize("moment", [0, 11, 40])
def test_a_reset_clears_all_state(config, moment):
    # ``moment`` cycles after the first step: operands, results and commands are in flight.
    rng = np.random.default_rng(moment)
    k = 16 * config.depth
    product = lines(rng, 2 * config.rows, k), lines(rng, 2 * config.cols, k)
    lost = Scenario(config)
    lost.multiply(*product, feed=(1,), tag=7)
    lost.job(*product, flags=JobFlag.FEED_A, tag=8)
    lost.load(0, product[0], flags=LoadFlag.FEED)
    scenario = random_program(config, rng, 3)
    core, reset, ended = Core(config), Signal(), []

    async def after_reset(ctx):
        while not ended or ctx.get(reset):
            await ctx.tick()

    async def source(ctx):
        for word in lost.words:
            if not ended:  # a word that is valid at the reset is lost
                await send(ctx, core.commands, [word])
        await after_reset(ctx)
        await send(ctx, core.commands, scenario.words)

    async def end(ctx):
        while not (await ctx.tick().sample(core.activity.active))[-1]:
            pass
        await ticks(ctx, moment)
        ended.append(moment)
        ctx.set(reset, 1)
        await ticks(ctx, 4)
        ctx.set(reset, 0)

    async def sink(ctx):
        while not ended:
            ctx.set(core.results.ready, int(rng.integers(2)))
            await ctx.tick()
        await after_reset(ctx)
        await answers(ctx, core, scenario)

    checks = [checker(core.results, "results", reset)]
    simulate(ResetInserter(reset)(core), source, end, sink, background=checks)


def test_a_load_waits_for_the_jobs_on_its_pages():
    config = CONFIGS["3x5x2"]
    rng = np.random.default_rng(6)
    scenario = Scenario(config)
    for tag in range(6):
        scenario.multiply(lines(rng, 4, 9), lines(rng, 7, 9), tag=tag)
    run(Core(config), scenario, stall=90)


def test_a_load_without_words_is_an_error():
    config = CONFIGS["3x5x2"]
    rng = np.random.default_rng(7)
    scenario = Scenario(config)
    scenario.send(Load(0, 0, 1, 0, 4).pack())
    scenario.multiply(lines(rng, 3, 2), lines(rng, 5, 2))
    run(Core(config), scenario)
