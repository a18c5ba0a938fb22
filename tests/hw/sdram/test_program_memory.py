"""The program memory of a network core in an SDRAM: reads of both clients, stores, and the host."""

import random

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect
from network_cores import small_network_core

from verif.amaranth_bench import plain, send, simulate, ticks
from verif.sdram_bench import short
from verif.sdram_chip import SdramChipModel
from weft.hw.network_core.host.program_access import ProgramAccess
from weft.hw.network_core.memory.program_memory import ProgramMemory
from weft.hw.sdram.controller import SdramController

DEPTH, VECTORS, MHZ, BASE = 2, 4, 110, 0x40
CORE = small_network_core(2, 4, DEPTH, 2, words=16, read_vectors=VECTORS, program_words=512)
CHIP = short(mhz=MHZ, columns=64, interval=130)


class Both(wiring.Component):
    """The memory and the controller, connected, with the access of the host between them."""

    def __init__(self):
        super().__init__({})
        self.memory = ProgramMemory(CORE)
        self.access = ProgramAccess(CORE)
        self.controller = SdramController(CHIP, CHIP.timing(MHZ), data_bytes=DEPTH * VECTORS)

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory, m.submodules.controller = self.memory, self.controller
        m.submodules.access = self.access
        connect(m, self.memory.axi, self.access.core)
        connect(m, self.access.memory, self.controller.axi)
        return m


def place(number):
    return {"bank": number % CORE.banks, "word": number // CORE.banks}


def vectors(rng, count):
    """Numbers in runs: neighbours share beats, beats share bursts."""
    found = []
    while len(found) < count:
        first, step = VECTORS * rng.randrange(100), rng.choice((1, VECTORS))
        found += [first + n * step for n in range(rng.choice((1, 5, 30)))]
    return found


def test_reads_and_stores():
    both, rng = Both(), random.Random(5)
    memory, pins = both.memory, both.controller.pins
    model = SdramChipModel(CHIP, mhz=MHZ, contents=lambda bank, row, column: (
        row * 9973 + bank * 3001 + column * 77 & 0xFFFF
    ))
    found, events, wanted = ([], []), [], [vectors(rng, 90) for _ in range(2)]
    stores = [
        {"address": place(number), "data": rng.getrandbits(16), "enable": rng.randrange(1, 4)}
        for number in rng.sample(range(500, 540), 8)
    ]

    def word(number):
        """Of vector ``number``, by the address bits row, bank, column."""
        address = (BASE + DEPTH * number) // 2
        where = address // 64 % 4, address // 256, address % 64
        value, known = model.words.get(where, (0, 0))
        return model.contents(*where) & ~known | value & known

    before = {number: word(number) for number in range(500, 540)}

    def client(index):
        async def bench(ctx):
            ctx.set(memory.base, BASE)
            await send(ctx, memory.reads[index].request, map(place, wanted[index]))
            while len(found[index]) < len(wanted[index]):
                await ctx.tick()
        return bench

    async def storer(ctx):
        await send(ctx, memory.writes, stores)
        while not ctx.get(memory.written):
            await ctx.tick()
        await ticks(ctx, 30)

    # The host has no base: its vectors are others, and it writes each one before it reads it.
    by_host = [(number, rng.getrandbits(16), rng.randrange(4)) for number in
               rng.sample(range(700, 740), 24)]
    host_found = []

    async def host(ctx):
        access = both.access
        for number, data, enable in by_host:
            await send(ctx, access.writes, [
                {"address": place(number), "data": data, "enable": enable}
            ])
            await send(ctx, access.reads.request, [place(number)])
            while not ctx.get(access.reads.data_valid):
                await ctx.tick()
            host_found.append(plain(ctx.get(access.reads.data))[0])

    async def watch(ctx):
        watched = [one.data_valid for one in memory.reads]
        watched += [memory.reads[0].data, memory.stored, memory.store_error, memory.timed_out]
        watched += [memory.read_error]
        while True:
            _, _, first, second, data, stored, failed, late, wrong = (
                await ctx.tick().sample(*watched)
            )
            for valid, got in zip((first, second), found, strict=True):
                if valid:
                    got.append(plain(data)[0])
                    events.extend(["error"] * wrong)
            events.extend(["stored"] * stored + ["error"] * (failed + late))

    async def chip(ctx):
        while True:
            _, _, *outputs = await ctx.tick().sample(*model.outputs(pins))
            ctx.set(pins.dq_i, model.edge(*outputs))

    fresh = {number: word(number - BASE // DEPTH) for number, *_ in by_host}
    simulate(both, client(0), client(1), storer, host, background=[chip, watch], limit=20_000)
    for got, numbers in zip(found, wanted, strict=True):
        assert got == [word(number) for number in numbers]
    assert events == ["stored"] * len(stores)
    for store in stores:
        number = store["address"]["word"] * CORE.banks + store["address"]["bank"]
        mask = sum(0xFF << 8 * n for n in range(DEPTH) if store["enable"] >> n & 1)
        assert word(number) == before[number] & ~mask | store["data"] & mask
    assert len(host_found) == len(by_host)
    for found_one, (number, data, enable) in zip(host_found, by_host, strict=True):
        mask = sum(0xFF << 8 * n for n in range(DEPTH) if enable >> n & 1)
        assert found_one == fresh[number] & ~mask | data & mask
