"""The control against the register map: which accesses are refused, and what each does."""

import pytest

from weft.config import Config
from weft.hw.bus.csr_bank import ERRORS, CsrBank
from weft.ip import BUSES, Ip
from weft.register_map import SPACE, fifo_ports, registers
from weft.registers import REGISTERS
from weft.sim.amaranth_bench import simulate

CONFIG = Config(rows=2, cols=4, depth=1, a_words=64, b_words=64)


class Driver:
    """Makes accesses of the port, one at a time."""

    def __init__(self, dut):
        self.dut = dut

    async def access(self, ctx, address, value=None, mask=15):
        """The word read, and whether the access was refused."""
        port = self.dut.port
        ctx.set(port.access.valid, 1)
        ctx.set(port.access.payload, {
            "address": address // 4, "write": value is not None, "mask": mask, "data": value or 0,
        })
        await ctx.tick().until(port.access.ready)
        ctx.set(port.access.valid, 0)
        (answer,) = await ctx.tick().sample(port.answer.payload).until(port.answer.valid)
        return answer.data, answer.refused


def run(ip, bench):
    dut = CsrBank(ip)

    async def core(ctx):
        """Core registers read as their address, after a while; in windows there is always room."""
        while True:
            _, _, asks, address = await ctx.tick().sample(dut.asks, dut.address)
            if asks:
                ctx.set(dut.value, address + 1000)
                ctx.set(dut.told, 1)
                await ctx.tick()
                ctx.set(dut.told, 0)

    async def body(ctx):
        if ip.has_fifo_ports:
            ctx.set(dut.commands.ready, 1)
            ctx.set(dut.results.valid, 1)
            ctx.set(dut.level.some, 1)
        if ip.bus == "dma":
            ctx.set(dut.desc_free, 3)
        await bench(ctx, dut, Driver(dut))

    simulate(dut, body, background=[core], limit=60_000)


@pytest.mark.parametrize("bus, window", [*((bus, False) for bus in BUSES), ("dma", True)])
def test_every_address_does_what_the_map_says(bus, window):
    ip = Ip(config=CONFIG, bus=bus, window=window)
    ways = {r.address: r.access for r in registers(ip)}
    for window in fifo_ports(ip):
        ways |= dict.fromkeys(range(window.address, window.address + window.size, 4), window.access)
    known = sorted(ways)
    chosen = {a for k in known for a in (k - 4, k, k + 4) if not 0x810 < a % 0x400 + 0x800 < 0xBF0}
    chosen = sorted(a for a in chosen | set(known[:80]) if 0 <= a < SPACE)

    async def bench(ctx, dut, driver):
        for address in chosen:
            way = ways.get(address, "")
            value, refused = await driver.access(ctx, address)
            assert refused == (way not in ("ro", "rw")), hex(address)
            if address < 4 * len(REGISTERS):
                assert value == address // 4 + 1000
            if refused:
                assert value == 0
            if address != next(r.address for r in registers(ip) if r.name == "control"):
                _, refused = await driver.access(ctx, address, 0)
                assert refused == (way not in ("wo", "rw")), hex(address)
                for mask in (0, 7, 14):
                    assert (await driver.access(ctx, address, 0, mask))[1]

    run(ip, bench)


def test_what_is_read_is_what_is_there():
    ip = Ip(config=CONFIG, bus="axi")
    at = {r.name: r.address for r in registers(ip)}

    async def bench(ctx, dut, driver):
        ctx.set(dut.busy, 1)
        ctx.set(dut.level, {"words": 300, "complete": 1})
        ctx.set(dut.room, 345)
        ctx.set(dut.ended, {"valid": 1, "tag": 0xBEEF, "status": 2})
        await ctx.tick()
        ctx.set(dut.ended.valid, 0)
        assert await driver.access(ctx, at["status"]) == (1, 0)
        assert await driver.access(ctx, at["cmd_fifo_free"]) == (345, 0)
        assert await driver.access(ctx, at["result_level"]) == (2 << 24 | 1 << 16 | 300, 0)
        assert await driver.access(ctx, at["result_tag"]) == (0xBEEF, 0)
        for n in range(3):
            ctx.set(dut.ended, {"valid": 1, "tag": 7 + n, "status": n})
            await ctx.tick()
        ctx.set(dut.ended.valid, 0)
        assert await driver.access(ctx, at["jobs_done"]) == (4, 0)
        assert await driver.access(ctx, at["last_job"]) == (2 << 16 | 9, 0)
        assert await driver.access(ctx, at["irq_status"]) == (3, 0)
        # In a soft reset there is no room, and what is written is refused.
        ctx.set(dut.reset_busy, 1)
        assert await driver.access(ctx, at["status"]) == (3, 0)
        assert await driver.access(ctx, at["cmd_fifo_free"]) == (0, 0)
        assert (await driver.access(ctx, 0x800, 5))[1]
        assert await driver.access(ctx, at["irq_status"]) == (3 | 1 << 2 | 1 << 3, 0)

    run(ip, bench)


def test_control_is_a_pulse():
    ip, pulses = Ip(config=CONFIG, bus="stream"), []

    async def bench(ctx, dut, driver):
        at = {r.name: r.address for r in registers(ip)}
        await driver.access(ctx, at["irq_enable"], 7)
        for value in (0, 1, 2, 3):
            ctx.set(dut.port.access.valid, 1)
            ctx.set(dut.port.access.payload, {
                "address": at["control"] // 4, "write": 1, "mask": 15, "data": value,
            })
            await ctx.tick()
            ctx.set(dut.port.access.valid, 0)
            for _ in range(3):
                _, _, reset, abort = await ctx.tick().sample(dut.reset, dut.abort)
                pulses.append(2 * abort + reset)
        assert await driver.access(ctx, at["irq_enable"]) == (7, 0)

    run(ip, bench)
    assert pulses == [0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0]


@pytest.mark.parametrize("follows", [0, 1])
def test_no_access_is_taken_while_a_result_is_waited_for(follows):
    ip, answers = Ip(config=CONFIG, bus="axi"), []

    async def bench(ctx, dut, driver):
        port = dut.port
        ctx.set(dut.results.valid, follows)
        ctx.set(dut.follows, follows)
        ctx.set(port.access.payload, {"address": 0xC00 // 4, "write": 0, "mask": 15, "data": 0})
        ctx.set(port.access.valid, 1)
        for cycle in range(6):
            if cycle == 4:
                ctx.set(dut.results.valid, 1)
            _, _, ready, answered = await ctx.tick().sample(port.access.ready, port.answer.valid)
            answers.append((ready, answered))

    run(ip, bench)
    waits = [(1, 0), (0, 0), (0, 0), (0, 0), (0, 1), (1, 0)]
    assert answers == ([(1, 0)] + [(1, 1)] * 5 if follows else waits)


def test_status_says_that_the_dma_moves():
    ip = Ip(config=CONFIG, bus="dma")
    at = {r.name: r.address for r in registers(ip)}["status"]

    async def bench(ctx, dut, driver):
        for dma_busy in (1, 0):
            ctx.set(dut.dma_busy, dma_busy)
            assert await driver.access(ctx, at) == (dma_busy << 2, 0)

    run(ip, bench)


def test_a_window_stays_in_a_soft_reset():
    ip = Ip(config=CONFIG, bus="dma", window=True)
    at = {r.name: r.address for r in registers(ip)}

    async def bench(ctx, dut, driver):
        for base, limit in ((0, 0xFFFFFFFF), (0x80000000, 0x8000FFFF), (0x12345678, 0x9ABCDEF0)):
            if base:
                await driver.access(ctx, at["dma_base"], base)
                await driver.access(ctx, at["dma_limit"], limit)
                await driver.access(ctx, at["control"], 1)
            assert (ctx.get(dut.base), ctx.get(dut.limit)) == (base, limit)
            assert await driver.access(ctx, at["dma_base"]) == (base, 0)
            assert await driver.access(ctx, at["dma_limit"]) == (limit, 0)

    run(ip, bench)


def test_every_error_of_the_engine_is_an_interrupt():
    ip = Ip(config=CONFIG, bus="dma")
    at = {r.name: r.address for r in registers(ip)}["irq_status"]

    async def bench(ctx, dut, driver):
        for bit, name in enumerate(ERRORS, 5):
            ctx.set(dut.errors[name], 1)
            await ctx.tick()
            ctx.set(dut.errors[name], 0)
            assert await driver.access(ctx, at) == (1 << bit, 0)
            await driver.access(ctx, at, 1 << bit)

    run(ip, bench)
