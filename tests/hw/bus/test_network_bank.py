"""Tests of the registers of a network core: errors, lists that start or do not, transfers."""

from bank_driver import BankDriver, check_accesses, core_registers
from network_cores import small_network_core

from verif.amaranth_bench import simulate, ticks
from weft.hw.bus.network_wrapper import NetworkBank
from weft.network_core.descriptors import NetworkState
from weft.network_core.ip import NetworkIp
from weft.register_map import fifo_ports, registers

CHIP = small_network_core(2, 4, 4, words=32)
PROGRAM = NetworkIp(
    config=small_network_core(2, 4, 4, words=32, read_vectors=2, program_words=64), bus="axi"
)
IP = NetworkIp(config=CHIP, bus="axi")
AT = {item.name: item.address for item in (*registers(IP), *fifo_ports(IP))}
RESET, ABORT, START = 1, 2, 4
DONE, FAILED, ACCESS, OVERFLOW, UNDERFLOW, REFUSED = (1 << n for n in range(6))


class NetworkBankBench:
    """A bank with a core that answers, and with the pulses that it sends."""

    def __init__(self, dut):
        self.dut, self.driver, self.pulses = dut, BankDriver(dut), []
        self.at = {item.name: item.address for item in (*registers(dut.ip), *fifo_ports(dut.ip))}

    async def watch(self, ctx):
        dut = self.dut
        while True:
            _, _, begin, abort, reset, transfer = await ctx.tick().sample(
                dut.begin, dut.abort, dut.reset, dut.transfer
            )
            names = {"begin": begin, "abort": abort, "reset": reset, "write": transfer.write,
                     "read": transfer.read}
            self.pulses += [name for name, pulse in names.items() if pulse]

    async def read(self, ctx, name):
        value, error = await self.driver.access(ctx, self.at[name])
        assert not error, name
        return value

    async def write(self, ctx, name, value):
        assert (await self.driver.access(ctx, self.at[name], value)) == (0, 0), name

    async def events(self, ctx):
        """The value of IRQ_STATUS, which is cleared."""
        value = await self.read(ctx, "irq_status")
        await self.write(ctx, "irq_status", value)
        return value


def run(bench, ip=IP):
    found = NetworkBankBench(NetworkBank(ip))

    async def body(ctx):
        ctx.set(found.dut.write_words.ready, 1)
        ctx.set(found.dut.read_words.valid, 1)
        ctx.set(found.dut.read_level, 7)
        await bench(ctx, found.dut, found)

    simulate(found.dut, body, background=[core_registers(found.dut), found.watch], limit=60_000)
    return found.pulses


def test_every_address_allows_what_the_map_says():
    async def bench(ctx, dut, found):
        await check_accesses(ctx, found.driver, IP)

    run(bench)


def test_a_list_starts_only_with_a_legal_window():
    async def bench(ctx, dut, found):
        await found.write(ctx, "control", START)  # after power-on: BASE and LIMIT are 0
        assert await found.events(ctx) == REFUSED
        for base, limit, legal in (
            (0, 33, 0), (5, 5, 0), (6, 5, 0), (0, 1 << 31, 0), (1 << 31, 32, 0), (31, 32, 1),
        ):
            await found.write(ctx, "base", base)
            await found.write(ctx, "limit", limit)
            await found.write(ctx, "control", START)
            assert await found.read(ctx, "status") == legal
            assert await found.events(ctx) == (0 if legal else REFUSED)
            assert (ctx.get(dut.base), ctx.get(dut.limit)) == (base, limit)

    assert run(bench) == ["begin"]


def test_a_list_runs_until_it_ends_or_is_aborted():
    async def bench(ctx, dut, found):
        await found.write(ctx, "limit", 32)
        for name, value in (("list_address", 0x12345678), ("log_address", 0x9ABCDEF0)):
            await found.write(ctx, name, value)
            assert await found.read(ctx, name) == value
        await found.write(ctx, "irq_enable", DONE)
        for state, events in ((NetworkState.DONE, DONE), (NetworkState.ERROR, DONE | FAILED)):
            await found.write(ctx, "control", START)
            assert not ctx.get(dut.irq)
            await found.write(ctx, "control", START)
            assert await found.events(ctx) == REFUSED
            ctx.set(dut.state, state)
            ctx.set(dut.finished, 1)
            await ctx.tick()
            ctx.set(dut.finished, 0)
            await ticks(ctx, 2)
            assert ctx.get(dut.irq)
            assert await found.read(ctx, "status") == 0
            assert await found.events(ctx) == events
        await found.write(ctx, "control", START)
        await found.write(ctx, "control", ABORT)
        assert await found.read(ctx, "status") == 0
        assert await found.events(ctx) == DONE | FAILED
        await found.write(ctx, "control", START | ABORT)
        assert await found.events(ctx) == 0
        assert await found.read(ctx, "status") == 1
        await found.write(ctx, "control", RESET)
        assert await found.read(ctx, "status") == 0
        ctx.set(dut.reset_busy, 1)
        await found.write(ctx, "control", START)
        await found.write(ctx, "memory_write", 4)
        assert await found.read(ctx, "status") == 2
        assert await found.events(ctx) == REFUSED
        assert (await found.driver.access(ctx, AT["write_fifo"], 5))[1]
        assert await found.events(ctx) == ACCESS | OVERFLOW

    assert run(bench) == ["begin", "begin", "begin", "abort", "abort", "begin", "reset"]


def test_transfers():
    layout = 0x0123_4567

    async def bench(ctx, dut, found):
        await found.write(ctx, "memory_layout", layout)
        assert await found.read(ctx, "memory_layout") == layout == ctx.get(dut.transfer.layout)
        await found.write(ctx, "memory_write", 9)
        ctx.set(dut.memory_busy, 1)
        assert await found.read(ctx, "status") == 4
        await found.write(ctx, "memory_read", 9)
        assert await found.events(ctx) == REFUSED
        ctx.set(dut.memory_busy, 0)
        await found.write(ctx, "memory_read", 9)
        ctx.set(dut.write_free, 300)
        assert await found.read(ctx, "write_fifo_free") == 300
        assert await found.read(ctx, "read_fifo_level") == 7
        ctx.set(dut.read_words.payload, 0xCAFE)
        assert await found.driver.access(ctx, AT["read_fifo"]) == (0xCAFE, 0)
        ctx.set(dut.read_level, 0)
        assert await found.driver.access(ctx, AT["read_fifo"]) == (0, 1)
        ctx.set(dut.write_words.ready, 0)
        assert await found.driver.access(ctx, AT["write_fifo"], 5) == (0, 1)
        assert await found.events(ctx) == ACCESS | OVERFLOW | UNDERFLOW

    assert run(bench) == ["write", "read"]


def test_only_words_that_a_transfer_expects_are_taken():
    """Before it, after its last one, of a read, and after a reset, a word is an overflow."""
    async def bench(ctx, dut, core):
        async def word(value):
            return (await core.driver.access(ctx, AT["write_fifo"], value))[1]

        async def refused():
            assert await word(1)
            assert await core.events(ctx) == ACCESS | OVERFLOW

        await refused()
        for count in (1, 4, 5, 8, 9):
            await core.write(ctx, "memory_write", count)
            for n in range(-(-count // 4)):
                assert not await word(n)
            await refused()
        await core.write(ctx, "memory_write", 0)
        await refused()
        await core.write(ctx, "memory_read", 8)
        await refused()
        await core.write(ctx, "memory_write", 8)
        await core.write(ctx, "control", RESET)
        await refused()
        assert taken == [n for count in (1, 4, 5, 8, 9) for n in range(-(-count // 4))]

    taken = []
    dut = NetworkBank(IP)
    core = NetworkBankBench(dut)

    async def watch(ctx):
        async for _, _, valid, value in ctx.tick().sample(
            dut.write_words.valid, dut.write_words.payload
        ):
            if valid:
                taken.append(value)

    async def body(ctx):
        ctx.set(dut.write_words.ready, 1)
        await bench(ctx, dut, core)

    simulate(dut, body, background=[watch], limit=60_000)


def test_a_list_needs_a_legal_program_memory():
    async def bench(ctx, dut, core):
        await core.write(ctx, "limit", 32)
        for base, limit, legal in (
            (0, 0, 0), (0, 65, 0), (4, 64, 0), (8, 64, 1), (0, 1, 1), (0xFFFFFFF8, 64, 1),
        ):
            await core.write(ctx, "program_base", base)
            await core.write(ctx, "program_limit", limit)
            assert await core.read(ctx, "program_limit") == limit
            core.pulses.clear()
            await core.write(ctx, "control", START)
            await ticks(ctx, 3)
            assert core.pulses == ["begin"] * legal
            assert (ctx.get(dut.program_base), ctx.get(dut.program_limit)) == (base, limit)
            events = await core.events(ctx)
            assert events == REFUSED * (not legal)
            await core.write(ctx, "control", ABORT)
            await core.events(ctx)

    run(bench, PROGRAM)
