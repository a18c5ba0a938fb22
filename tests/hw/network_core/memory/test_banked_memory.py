"""The memory: rows, the side port and writes against a list of vectors."""

import random
from itertools import zip_longest

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from network_cores import small_network_core

from verif.amaranth_bench import plain, put, simulate
from verif.primitives import cosimulate
from weft.hw.network_core.memory.banked_memory import BankedMemory

CYCLES = 300
OUTSIDE = -1  # number of a vector outside the map
VALUE, ODD_VALUE = 0xA5, 0x3C  # of its bytes; of the odd ones with int16

TWO_ROWS = {"lanes": 8, "hop": 2, "two_rows": True}


class Traffic:
    """Random accesses to all ports, and their traces by cycle: vectors have numbers."""

    def __init__(self, config, seed):
        self.config, self.rng = config, random.Random(seed)
        self.dut = BankedMemory(config)
        self.writes, self.rows, self.reads = [], [], []  # accesses; reads: (number, ready)
        self.seconds = []  # the second writes
        self.row_data, self.read_data = [], []

    def place(self, number):
        return {"bank": number % self.config.banks, "word": number // self.config.banks}

    def set_write(self, ctx):
        config, rng = self.config, self.rng
        number, word = rng.randrange(config.vectors), rng.getrandbits(8 * config.array.depth)
        enable, valid = rng.getrandbits(config.array.depth), rng.random() < 0.6
        put(ctx, self.dut.write, {
            "valid": valid, "address": self.place(number), "data": word, "enable": enable,
        })
        self.writes.append((number, word, enable) if valid else None)
        if config.two_rows:
            self.set_second(ctx, number % config.banks)

    def set_second(self, ctx, bank):
        """A write to another bank, or none."""
        config, rng = self.config, self.rng
        other = rng.choice([n for n in range(config.banks) if n != bank])
        number = other + config.banks * rng.randrange(config.words)
        word, enable = (rng.getrandbits(n * config.array.depth) for n in (8, 1))
        valid = rng.random() < 0.6
        put(ctx, self.dut.second, {
            "valid": valid, "address": self.place(number), "data": word, "enable": enable,
        })
        self.seconds.append((number, word, enable) if valid else None)

    def set_rows(self, ctx):
        """Each row reads a bank of its own, or is invalid in any bank, and may be outside."""
        config, rng, numbers = self.config, self.rng, []
        banks = rng.sample(range(config.banks), config.array.rows)
        for row, bank in enumerate(banks):
            number, valid = bank + config.banks * rng.randrange(config.words), rng.random() < 0.7
            unused = rng.randrange(config.vectors)
            address = self.place(number if valid else unused)
            outside = not valid and rng.random() < 0.5
            request = {"valid": valid, "outside": outside, "address": address}
            put(ctx, self.dut.rows[row], request)
            numbers.append(number if valid else OUTSIDE if outside else None)
        self.rows.append(numbers)

    async def run(self, ctx):
        dut, config, number = self.dut, self.config, None
        ctx.set(dut.outside, VALUE)
        if config.int16:
            ctx.set(dut.outside_odd, ODD_VALUE)
        await ctx.tick().repeat(2)
        for _ in range(CYCLES):
            self.set_write(ctx)
            self.set_rows(ctx)
            if number is None and self.rng.random() < 0.8:
                number = self.rng.randrange(config.vectors - config.read_vectors + 1)
                put(ctx, dut.reads.request.payload, self.place(number))
                ctx.set(dut.read_bank, 1 << number % config.banks)
            ctx.set(dut.reads.request.valid, number is not None)
            _, _, ready, valid, words, row_data = await ctx.tick().sample(
                dut.reads.request.ready, dut.reads.data_valid, dut.reads.data, dut.row_data
            )
            self.reads.append((number, ready))
            self.read_data.append(plain(words) if valid else None)
            self.row_data.append(plain(row_data))
            number = None if ready else number

    def all_writes(self, end):
        """The writes before cycle ``end``; those of a cycle go to different banks."""
        pairs = zip_longest(self.writes[: max(0, end)], self.seconds[: max(0, end)])
        return (write for pair in pairs for write in pair)

    def vector(self, number, end):
        """The vector after all writes before cycle ``end``."""
        value = 0
        for write in self.all_writes(end):
            if write and write[0] == number:
                mask = sum(0xFF << 8 * n for n in range(8) if write[2] >> n & 1)
                value = value & ~mask | write[1] & mask
        return value


@pytest.fixture(scope="module", params=[
    (2, 2, 2), (4, 4, 4), (3, 1, 8), (1, 4, 4), (1, 2, 1),
    (2, 4, 1, dict(lanes=4, int16=True, requantize="tflite")),
    (2, 8, 2, TWO_ROWS), (4, 8, 4, TWO_ROWS),
])
def traffic(request):
    rows, depth, read_vectors, *options = request.param
    options = options[0] if options else {}
    config = small_network_core(rows, 8, depth, read_vectors=read_vectors, **options)
    found = Traffic(config, seed=rows + depth)
    simulate(found.dut, found.run)
    return found


def test_each_row_gets_its_vector(traffic):
    compared = 0
    for now in range(CYCLES - traffic.dut.ROW_LATENCY):
        previous = [write and write[0] for write in traffic.all_writes(now)][-2:]
        for row, number in enumerate(traffic.rows[now]):
            found = traffic.row_data[now + traffic.dut.ROW_LATENCY][row]
            if number is None:
                assert found == 0
            elif number == OUTSIDE:
                odd = ODD_VALUE if traffic.config.int16 else VALUE
                values = [VALUE, odd] * traffic.config.array.depth
                values = values[: traffic.config.array.depth]
                assert found == int.from_bytes(values, "little")
            elif number not in previous:  # else written while it is read
                assert found == traffic.vector(number, now - 1)
                compared += 1
    assert compared > CYCLES // 2


def test_each_read_gets_its_vectors_in_order(traffic):
    config, count = traffic.config, 0
    expected = [None] * (CYCLES + traffic.dut.READ_LATENCY)
    for now, (number, ready) in enumerate(traffic.reads):
        if number is not None and ready:
            expected[now + traffic.dut.READ_LATENCY] = [
                traffic.vector(n, now) for n in range(number, number + config.read_vectors)
            ]
            count += 1
    assert traffic.read_data == expected[:CYCLES]
    assert count > CYCLES // 4


def test_a_read_waits_only_for_a_write_to_one_of_its_banks(traffic):
    config = traffic.config
    for now, (number, ready) in enumerate(traffic.reads[1:]):
        if number is not None:
            banks = {n % config.banks for n in range(number, number + config.read_vectors)}
            writes = [*traffic.all_writes(now + 1)][-2:]  # of the cycle before
            written = {write[0] % config.banks for write in writes if write}
            assert ready == (not written & banks)


class FlatMemory(wiring.Component):
    """A memory whose read port is five signals."""

    def __init__(self, config):
        self.memory = BankedMemory(config)
        ports, reads = self.memory.signature.members, self.memory.reads
        self.names = [name for name in ports if name != "reads"]
        super().__init__({
            **{name: ports[name] for name in self.names},
            "address": In(reads.request.payload.shape()), "valid": In(1), "ready": Out(1),
            "data_valid": Out(1), "data": Out(reads.data.shape()),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = self.memory
        request = memory.reads.request
        m.d.comb += [
            request.payload.eq(self.address), request.valid.eq(self.valid),
            self.ready.eq(request.ready),
            self.data_valid.eq(memory.reads.data_valid), self.data.eq(memory.reads.data),
        ]
        for name in self.names:
            inner, outer = getattr(memory, name), getattr(self, name)
            is_input = self.signature.members[name].flow is In
            m.d.comb += inner.eq(outer) if is_input else outer.eq(inner)
        return m


@pytest.mark.slow
def test_blocks_equal_the_behavioural_model():
    dut = FlatMemory(small_network_core(2, 2, 2, target="ecp5", read_vectors=2))
    assert cosimulate(dut, cycles=3000) == "PASS"
