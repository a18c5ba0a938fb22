"""The sender: chunks cut into words, jobs ended with their last."""

import random

import pytest
from amaranth.hdl import signed
from amaranth.lib.data import ArrayLayout, StructLayout

from weft.hw.post.sender import Sender
from weft.sim.amaranth_bench import checker, quiet, receive, send, simulate


def chunk_layout(lanes):
    return StructLayout({
        "sums": ArrayLayout(signed(32), lanes), "last": 1, "silent": 1, "status": 2, "tag": 16,
    })


def chunks(rng, lanes, jobs):
    for tag in range(jobs):
        kind = rng.choice(["results", "results", "silent", "void"])
        count = rng.randint(1, 4) if kind == "results" else 1
        for n in range(count):
            yield {
                "sums": [rng.randint(-(1 << 31), (1 << 31) - 1) for _ in range(lanes)],
                "last": int(n == count - 1),
                "silent": int(kind == "silent"),
                "status": rng.choice([1, 2]) if kind == "void" else 0,
                "tag": 0xFF00 + tag,
            }


def words(chunk, width):
    """The words of a chunk; None for data that does not matter."""
    if chunk["silent"]:
        return
    data = b"".join((value & 0xFFFFFFFF).to_bytes(4, "little") for value in chunk["sums"])
    parts = [data[n : n + width] for n in range(0, len(data), width)]
    if chunk["status"]:
        parts = [None]
    for n, part in enumerate(parts):
        yield {
            "data": part and int.from_bytes(part, "little"),
            "last": int(chunk["last"] and n == len(parts) - 1),
            "status": chunk["status"],
            "tag": chunk["tag"],
        }


@pytest.mark.parametrize("width", [1, 2, 4, 16, 64])
@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0), (0, 0.5), (0.5, 0.9), (0.9, 0.5)])
def test_words_come_low_bytes_first(width, idle, stall):
    lanes = max(1, width // 4)
    dut = Sender(chunk=chunk_layout(lanes), bytes_out=width)
    given = list(chunks(random.Random(width), lanes, 12))
    expected = [word for chunk in given for word in words(chunk, width)]
    retired = []
    sent = []

    async def source(ctx):
        await send(ctx, dut.chunks, given, idle=idle, seed=1)

    async def sink(ctx):
        for want in expected:
            [got] = await receive(ctx, dut.results, 1, stall=stall, seed=len(sent))
            sent.append(got)
            assert got == {**got, **{k: v for k, v in want.items() if v is not None}}
        await quiet(ctx, dut.results)

    async def watch(ctx):
        while True:
            port = dut.chunks
            _, _, retire, taken, last = await ctx.tick().sample(
                dut.retire, port.valid & port.ready, port.payload.last
            )
            assert retire == (taken and last)
            if retire:
                retired.append(len(sent))

    checks = [checker(dut.results, "results"), checker(dut.chunks, "chunks")]
    simulate(dut, source, sink, background=[watch, *checks])
    assert len(retired) == sum(chunk["last"] for chunk in given)


def test_a_word_leaves_every_cycle():
    dut = Sender(chunk=chunk_layout(1), bytes_out=1)
    given = [chunk for chunk in chunks(random.Random(5), 1, 8) if not chunk["silent"]]
    count = len([word for chunk in given for word in words(chunk, 1)])

    async def source(ctx):
        await send(ctx, dut.chunks, given)

    async def sink(ctx):
        ctx.set(dut.results.ready, 1)
        valid = [(await ctx.tick().sample(dut.results.valid))[-1] for _ in range(count + 1)]
        assert valid == [1] * count + [0]

    simulate(dut, source, sink)


def test_a_silent_chunk_needs_no_taker():
    dut = Sender(chunk=chunk_layout(1), bytes_out=4)

    async def bench(ctx):
        silent = {"sums": [1], "last": 1, "silent": 1, "status": 0, "tag": 3}
        ctx.set(dut.chunks.payload, silent)
        ctx.set(dut.chunks.valid, 1)
        assert ctx.get(dut.chunks.ready) and ctx.get(dut.retire) and not ctx.get(dut.results.valid)

    simulate(dut, bench)
