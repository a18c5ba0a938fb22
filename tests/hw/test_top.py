"""The flat ports of the top: jobs through them, and the bits of each port."""

from types import SimpleNamespace

import numpy as np
from amaranth.hdl import Cat
from amaranth.lib.data import View

from verif.amaranth_bench import checker, quiet, receive, send, simulate, ticks
from weft.commands import JobFlag, Status
from weft.config import Config
from weft.hw.output.stream_packer import Result
from weft.hw.top import Top
from weft.registers import LATENCY, MAGIC, REGISTERS
from weft.sim.scenario import Scenario

CONFIG = Config(rows=2, cols=3, depth=2, a_words=64, b_words=64, bytes_in=8, bytes_out=8)


def commands(top):
    return SimpleNamespace(valid=top.cmd_valid, ready=top.cmd_ready, payload=top.cmd_data)


def results(top):
    word = View(
        Result(bytes_out=CONFIG.bytes_out),
        Cat(top.res_data, top.res_last, top.res_status, top.res_tag),
    )
    return SimpleNamespace(valid=top.res_valid, ready=top.res_ready, payload=word)


async def job(ctx, top, *, stall, seed):
    """All result words of one job."""
    return await receive(
        ctx, results(top), 1000, stall=stall, seed=seed, until=lambda word: word["last"]
    )


async def register(ctx, top, name):
    ctx.set(top.reg_address, REGISTERS.index(name))
    await ctx.tick().repeat(LATENCY)
    return ctx.get(top.reg_data)


def test_jobs_run_through_flat_ports():
    rng = np.random.default_rng(1)
    scenario = Scenario(CONFIG)
    for tag in (0x1234, 0xFFFF):
        product = rng.integers(-128, 128, (5, 7)), rng.integers(-128, 128, (4, 7))
        scenario.multiply(*(x.astype(np.int8) for x in product), tag=tag)
    scenario.reject(tag=3, k=0)
    one = np.ones((1, 1), np.int8)
    scenario.job(one, one, flags=JobFlag.FEED_A, tag=4)
    scenario.expected_results[-1].status = Status.ABORTED
    top = Top(CONFIG)

    async def source(ctx):
        await send(ctx, commands(top), scenario.words, idle=0.3)

    async def sink(ctx):
        for seed, answer in enumerate(scenario.expected_results):
            if answer.status == Status.ABORTED:
                await ticks(ctx, 50)
                ctx.set(top.cmd_abort, 1)
                await ctx.tick()
                ctx.set(top.cmd_abort, 0)
            answer.check(await job(ctx, top, stall=0.3, seed=seed))
        await quiet(ctx, results(top))
        assert await register(ctx, top, "magic") == MAGIC
        assert await register(ctx, top, "finished") == 4
        assert await register(ctx, top, "words_in") == len(scenario.words)

    simulate(top, source, sink, background=[checker(results(top), "results")])


def test_the_order_of_the_activity_bits():
    top = Top(CONFIG)
    names = ("words_in", "active", "starved", "stalled", "words_out", "busy")
    rng = np.random.default_rng(2)
    scenario = Scenario(CONFIG)
    for tag in range(6):
        product = rng.integers(-128, 128, (8, 4)), rng.integers(-128, 128, (9, 4))
        product = [x.astype(np.int8) for x in product]
        scenario.multiply(*product, feed=(0, 1), tag=tag)
    for tag in range(6, 16):  # more jobs than results are taken
        scenario.job(*product, tag=tag)
    counted = dict.fromkeys(names, 0)

    async def source(ctx):
        await send(ctx, commands(top), scenario.words)

    async def watch(ctx):
        while True:
            _, _, activity = await ctx.tick().sample(top.activity)
            for place, name in enumerate(names):
                counted[name] += activity >> place & 1

    async def sink(ctx):
        for answer in scenario.expected_results:
            answer.check(await job(ctx, top, stall=0.9, seed=answer.tag))
        await quiet(ctx, results(top))
        for name in names:
            assert await register(ctx, top, name) == counted[name]

    simulate(top, source, sink, background=[watch])
    assert all(counted.values())
    assert len(set(counted.values())) == len(names)  # else two bits could be swapped unnoticed
