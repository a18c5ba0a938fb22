"""Tests of the registers against the register map: errors, values and effects."""

import pytest
from bank_driver import BankDriver, check_accesses, core_registers

from verif.amaranth_bench import pulse, simulate
from weft.buses import BUSES
from weft.config import Config
from weft.hw.bus.csr_bank import DMA_ERRORS, CsrBank
from weft.ip import Ip
from weft.register_map import registers

CONFIG = Config(rows=2, cols=4, depth=1, a_words=64, b_words=64)


def run(ip, bench):
    dut = CsrBank(ip)

    async def body(ctx):
        if ip.has_fifo_ports:
            ctx.set(dut.commands.ready, 1)
            ctx.set(dut.results.valid, 1)
            ctx.set(dut.level.nonempty, 1)
        if ip.bus == "dma":
            ctx.set(dut.desc_free, 3)
        await bench(ctx, dut, BankDriver(dut))

    simulate(dut, body, background=[core_registers(dut)], limit=60_000)


@pytest.mark.parametrize("bus, window", [*((bus, False) for bus in BUSES), ("dma", True)])
def test_every_address_allows_what_the_map_says(bus, window):
    ip = Ip(config=CONFIG, bus=bus, window=window)

    async def bench(ctx, dut, driver):
        await check_accesses(ctx, driver, ip)

    run(ip, bench)


def test_values_of_status_and_job_registers():
    ip = Ip(config=CONFIG, bus="axi")
    at = {r.name: r.address for r in registers(ip)}

    async def bench(ctx, dut, driver):
        ctx.set(dut.busy, 1)
        ctx.set(dut.level, {"words": 300, "complete": 1})
        ctx.set(dut.cmd_free, 345)
        ctx.set(dut.job_done, {"valid": 1, "tag": 0xBEEF, "status": 2})
        await ctx.tick()
        ctx.set(dut.job_done.valid, 0)
        assert await driver.access(ctx, at["status"]) == (1, 0)
        assert await driver.access(ctx, at["cmd_fifo_free"]) == (345, 0)
        assert await driver.access(ctx, at["result_level"]) == (2 << 24 | 1 << 16 | 300, 0)
        assert await driver.access(ctx, at["result_tag"]) == (0xBEEF, 0)
        for n in range(3):
            ctx.set(dut.job_done, {"valid": 1, "tag": 7 + n, "status": n})
            await ctx.tick()
        ctx.set(dut.job_done.valid, 0)
        assert await driver.access(ctx, at["jobs_done"]) == (4, 0)
        assert await driver.access(ctx, at["last_job"]) == (2 << 16 | 9, 0)
        assert await driver.access(ctx, at["irq_status"]) == (3, 0)
        # During a soft reset CMD_FIFO has no space, and a write is an error.
        ctx.set(dut.reset_busy, 1)
        assert await driver.access(ctx, at["status"]) == (3, 0)
        assert await driver.access(ctx, at["cmd_fifo_free"]) == (0, 0)
        assert (await driver.access(ctx, 0x800, 5))[1]
        assert await driver.access(ctx, at["irq_status"]) == (3 | 1 << 2 | 1 << 3, 0)

    run(ip, bench)


def test_control_bits_are_pulses():
    ip, pulses = Ip(config=CONFIG, bus="stream"), []

    async def bench(ctx, dut, driver):
        at = {r.name: r.address for r in registers(ip)}
        await driver.access(ctx, at["irq_enable"], 7)
        for value in (0, 1, 2, 3):
            ctx.set(dut.bus.request.valid, 1)
            ctx.set(dut.bus.request.payload, {
                "addr": at["control"] // 4, "aligned": 1, "write": 1, "mask": 15, "data": value,
            })
            await ctx.tick()
            ctx.set(dut.bus.request.valid, 0)
            for _ in range(3):
                _, _, reset, abort = await ctx.tick().sample(dut.reset, dut.abort)
                pulses.append(2 * abort + reset)
        assert await driver.access(ctx, at["irq_enable"]) == (7, 0)

    run(ip, bench)
    assert pulses == [0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0]


@pytest.mark.parametrize("next_valid", [0, 1])
def test_requests_wait_while_a_read_waits_for_a_result(next_valid):
    ip, samples = Ip(config=CONFIG, bus="axi"), []

    async def bench(ctx, dut, driver):
        request, response = dut.bus.request, dut.bus.response
        ctx.set(dut.results.valid, next_valid)
        ctx.set(dut.next_valid, next_valid)
        ctx.set(request.payload, {
            "addr": 0xC00 // 4, "aligned": 1, "write": 0, "mask": 15, "data": 0,
        })
        ctx.set(request.valid, 1)
        for cycle in range(6):
            if cycle == 4:
                ctx.set(dut.results.valid, 1)
            _, _, ready, done = await ctx.tick().sample(request.ready, response.valid)
            samples.append((ready, done))

    run(ip, bench)
    waiting = [(1, 0), (0, 0), (0, 0), (0, 0), (0, 1), (1, 0)]
    assert samples == ([(1, 0)] + [(1, 1)] * 5 if next_valid else waiting)


def test_status_shows_dma_busy():
    ip = Ip(config=CONFIG, bus="dma")
    at = {r.name: r.address for r in registers(ip)}["status"]

    async def bench(ctx, dut, driver):
        for dma_busy in (1, 0):
            ctx.set(dut.dma_busy, dma_busy)
            assert await driver.access(ctx, at) == (dma_busy << 2, 0)

    run(ip, bench)


def test_dma_window_survives_a_soft_reset():
    ip = Ip(config=CONFIG, bus="dma", window=True)
    at = {r.name: r.address for r in registers(ip)}

    async def bench(ctx, dut, driver):
        for base, limit in ((0, 0xFFFFFFFF), (0x80000000, 0x8000FFFF), (0x12345678, 0x9ABCDEF0)):
            if base:
                await driver.access(ctx, at["dma_base"], base)
                await driver.access(ctx, at["dma_limit"], limit)
                await driver.access(ctx, at["control"], 1)
            assert (ctx.get(dut.dma_base), ctx.get(dut.dma_limit)) == (base, limit)
            assert await driver.access(ctx, at["dma_base"]) == (base, 0)
            assert await driver.access(ctx, at["dma_limit"]) == (limit, 0)

    run(ip, bench)


def test_every_dma_error_is_an_interrupt():
    ip = Ip(config=CONFIG, bus="dma")
    at = {r.name: r.address for r in registers(ip)}["irq_status"]

    async def bench(ctx, dut, driver):
        for bit, name in enumerate(DMA_ERRORS, 5):
            await pulse(ctx, dut.errors[name])
            assert await driver.access(ctx, at) == (1 << bit, 0)
            await driver.access(ctx, at, 1 << bit)

    run(ip, bench)
