"""The main memory: both ports over banks of several sizes."""

import random

from verif.amaranth_bench import put, simulate, ticks
from weft.hw.language_core.memory import MainMemory, bank_sizes
from weft.language_core.latencies import PORT_B


def test_bank_sizes():
    assert bank_sizes(3072) == [2048, 1024]
    assert bank_sizes(112) == [64, 32, 16]
    assert bank_sizes(256) == [256]


def test_words_and_bytes_of_all_banks():
    dut, rng = MainMemory(width=16, words=112, target="generic"), random.Random(1)
    words = [rng.randrange(1 << 16) for _ in range(112)]

    async def bench(ctx):
        for n, word in enumerate(words):
            put(ctx, dut.b_addr, n)
            put(ctx, dut.b_write_en, 3)
            put(ctx, dut.b_write_data, word)
            await ctx.tick()
        for n in (3, 70, 111):  # a byte each
            put(ctx, dut.b_addr, n)
            put(ctx, dut.b_write_en, 2)
            put(ctx, dut.b_write_data, 0x5AFF)
            words[n] = 0x5A00 | words[n] & 0xFF
            await ctx.tick()
        put(ctx, dut.b_write_en, 0)
        order = [rng.randrange(112) for _ in range(200)] + [3, 70, 111]
        pairs = list(zip(order, order[::-1], strict=True))
        for n in range(len(pairs) + PORT_B):
            if n < len(pairs):
                put(ctx, dut.a_addr, pairs[n][0])
                put(ctx, dut.b_addr, pairs[n][1])
            if dut.LATENCY <= n < len(pairs):
                assert ctx.get(dut.a_data) == words[pairs[n - dut.LATENCY][0]]
            if n >= PORT_B:
                assert ctx.get(dut.b_data) == words[pairs[n - PORT_B][1]]
            await ctx.tick()
        await ticks(ctx, 1)

    simulate(dut, bench)


def test_parts_are_written_a_cycle_after_their_address():
    dut, rng = MainMemory(width=32, words=24, target="generic", parts=2), random.Random(2)
    words = [0] * 24
    writes = [(rng.randrange(24), rng.randrange(1 << 32), rng.randrange(4), rng.choice((0, 0, 5)))
              for _ in range(150)]

    async def bench(ctx):
        later = 0
        for number, word, parts, enable in writes:  # one write a cycle, each word is read later
            put(ctx, dut.b_addr, number)
            put(ctx, dut.b_write_data, word)
            put(ctx, dut.b_write_en, enable)
            put(ctx, dut.b_parts, later)
            later = parts
            for byte in range(4):
                if enable >> byte & 1 or parts >> byte // 2 & 1:
                    mask = 0xFF << 8 * byte
                    words[number] = words[number] & ~mask | word & mask
            await ctx.tick()
        put(ctx, dut.b_write_en, 0)
        put(ctx, dut.b_parts, later)
        await ctx.tick()
        put(ctx, dut.b_parts, 0)
        for number in range(24 + dut.LATENCY):
            put(ctx, dut.a_addr, min(number, 23))
            if number >= dut.LATENCY:
                assert ctx.get(dut.a_data) == words[number - dut.LATENCY]
            await ctx.tick()

    simulate(dut, bench)
