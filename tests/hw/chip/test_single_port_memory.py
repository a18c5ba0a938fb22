"""The memory with one port: the row, reads and writes against a list of vectors, and its turns."""

import random

import pytest
from network_chips import small_chip

from verif.amaranth_bench import plain, put, simulate
from weft.hw.chip.single_port_memory import SinglePortMemory

CYCLES = 600
OUTSIDE = "outside"
VALUE = 0xA5  # of the bytes of a vector outside the map


class Traffic:
    """Random accesses, each in its turns, and the traces of the outputs by cycle."""

    def __init__(self, depth):
        self.chip = small_chip(1, 2, depth, target="ice40up", scale_cycles=2)
        self.rng = random.Random(depth)
        self.dut = SinglePortMemory(self.chip)
        self.turns, self.writes, self.rows, self.reads = [], [], [], []
        self.row_data, self.read_data, self.holds = [], [], []

    async def run(self, ctx):
        dut, chip, rng = self.dut, self.chip, self.rng
        ctx.set(dut.outside, VALUE)
        hold, number = False, None
        for _ in range(CYCLES):
            turn = rng.randrange(2)
            ctx.set(dut.side_turn, turn)
            if not hold:
                self.set_write(ctx)
            row, kind = rng.randrange(chip.words), rng.randrange(3)
            valid, outside = not turn and kind == 0, kind == 1
            request = {"valid": valid, "outside": outside, "address": {"bank": 0, "word": row}}
            put(ctx, dut.rows[0], request)
            if number is None and rng.random() < 0.6:
                number = rng.randrange(chip.words)
                put(ctx, dut.reads.payload, {"bank": 0, "word": number})
            ctx.set(dut.reads.valid, number is not None)
            _, _, hold, ready, valid_data, words, row_data = await ctx.tick().sample(
                dut.hold, dut.reads.ready, dut.read_valid, dut.read_data, dut.row_data
            )
            self.turns.append(turn)
            self.rows.append(row if valid else OUTSIDE if outside else None)
            self.reads.append((number, ready))
            self.holds.append(hold)
            self.row_data.append(plain(row_data)[0])
            self.read_data.append(plain(words)[0] if valid_data else None)
            number = None if ready else number

    def set_write(self, ctx):
        chip, rng = self.chip, self.rng
        write = {
            "valid": rng.randrange(2), "address": {"bank": 0, "word": rng.randrange(chip.words)},
            "data": rng.getrandbits(8 * chip.core.depth), "enable": rng.getrandbits(
                chip.core.depth
            ),
        }
        put(ctx, self.dut.write, write)
        self.writes.append((len(self.turns), write))

    def vector(self, word, end):
        """The vector after all writes whose turn came before cycle ``end``."""
        value = 0
        for first, write in self.writes:
            turn = next((n for n in range(first, CYCLES) if self.turns[n]), CYCLES)
            if turn < end and write["valid"] and write["address"]["word"] == word:
                mask = sum(0xFF << 8 * n for n in range(8) if write["enable"] >> n & 1)
                value = value & ~mask | write["data"] & mask
        return value


@pytest.fixture(scope="module", params=[1, 2, 8])
def traffic(request):
    found = Traffic(request.param)
    simulate(found.dut, found.run)
    return found


def test_the_row_gets_its_vector(traffic):
    latency, compared = traffic.dut.ROW_LATENCY, 0
    outside = int.from_bytes([VALUE] * traffic.chip.core.depth)
    for now, row in enumerate(traffic.rows[: CYCLES - latency]):
        special = {None: 0, OUTSIDE: outside}
        expected = special[row] if row in special else traffic.vector(row, now)
        assert traffic.row_data[now + latency] == expected
        compared += row not in special
    assert compared > CYCLES // 10


def test_each_read_gets_its_vector(traffic):
    latency = traffic.dut.READ_LATENCY
    expected = [
        traffic.vector(number, now) if number is not None and ready else None
        for now, (number, ready) in enumerate(traffic.reads)
    ]
    assert traffic.read_data == [None] * latency + expected[: CYCLES - latency]
    assert sum(value is not None for value in expected) > CYCLES // 10


def test_writes_come_first_in_a_turn_of_the_side_port(traffic):
    """A read waits for the row and for a write; a write waits for the row."""
    on_port = dict(traffic.writes)
    for now, turn in enumerate(traffic.turns):
        write = on_port.setdefault(now, on_port.get(now - 1))
        assert traffic.reads[now][1] == (turn and not write["valid"])
        assert traffic.holds[now] == (not turn and write["valid"])
