"""The flat ports of the top: jobs through them, and the bits of each port."""

from types import SimpleNamespace

import pytest
from amaranth.hdl import Cat
from amaranth.lib.data import View

from verif.amaranth_bench import checker, pulse, quiet, send, simulate, ticks
from verif.core_bench import check_results, job_words
from weft.commands import Status
from weft.config import Config
from weft.hw.output.stream_packer import Result
from weft.hw.top import Top
from weft.registers import LATENCY, MAGIC, REGISTERS
from weft.sim.scenario import A, B, Scenario

CONFIG = Config(rows=2, cols=3, depth=2, a_words=64, b_words=64, bytes_in=8, bytes_out=8)


def commands(top):
    return SimpleNamespace(valid=top.cmd_valid, ready=top.cmd_ready, payload=top.cmd_data)


def results(top):
    word = View(
        Result(bytes_out=CONFIG.bytes_out),
        Cat(top.res_data, top.res_last, top.res_status, top.res_tag),
    )
    return SimpleNamespace(valid=top.res_valid, ready=top.res_ready, payload=word)


async def register(ctx, top, name):
    ctx.set(top.reg_address, REGISTERS.index(name))
    await ctx.tick().repeat(LATENCY)
    return ctx.get(top.reg_data)


def test_jobs_run_through_flat_ports():
    scenario = Scenario(CONFIG)
    for tag in (0x1234, 0xFFFF):
        scenario.multiply(*scenario.operands(5, 4, 7), tag=tag)
    scenario.reject(tag=3, k=0)
    one = map(scenario.place, (A, B), scenario.operands(1, 1, 1))
    scenario.job(*one, feed=(A,), tag=4, statuses={Status.ABORTED})
    top = Top(CONFIG)

    async def source(ctx):
        await send(ctx, commands(top), scenario.words, idle=0.3)

    async def sink(ctx):
        for seed, scoreboard in enumerate(scenario.scoreboards):
            if Status.ABORTED in scoreboard.statuses:
                await ticks(ctx, 50)
                await pulse(ctx, top.cmd_abort)
            scoreboard.check(await job_words(ctx, results(top), stall=0.3, seed=seed))
        await quiet(ctx, results(top))
        assert await register(ctx, top, "magic") == MAGIC
        assert await register(ctx, top, "finished") == 4
        assert await register(ctx, top, "words_in") == len(scenario.words)

    simulate(top, source, sink, background=[checker(results(top), "results")])


@pytest.mark.slow
def test_the_order_of_the_activity_bits():
    top = Top(CONFIG)
    names = ("words_in", "active", "starved", "stalled", "words_out", "busy")
    scenario = Scenario(CONFIG)
    for _ in range(6):
        placed = scenario.multiply(*scenario.operands(8, 9, 4), feed=(A, B))
    for _ in range(10):  # more jobs than results are taken
        scenario.job(*placed)
    counted = dict.fromkeys(names, 0)

    async def source(ctx):
        await send(ctx, commands(top), scenario.words)

    async def watch(ctx):
        while True:
            _, _, activity = await ctx.tick().sample(top.activity)
            for place, name in enumerate(names):
                counted[name] += activity >> place & 1

    async def sink(ctx):
        await check_results(ctx, results(top), scenario, stall=0.9)
        for name in names:
            assert await register(ctx, top, name) == counted[name]

    simulate(top, source, sink, background=[watch])
    assert all(counted.values())
    assert len(set(counted.values())) == len(names)  # else two bits could be swapped unnoticed
