"""The sender: chunks packed into words or cut, jobs ended with their last."""

import random

import pytest
from amaranth.hdl import signed
from amaranth.lib.data import ArrayLayout, StructLayout

from weft.hw.output.stream_packer import StreamPacker
from weft.sim.amaranth_bench import checker, put, quiet, receive, send, simulate

SHAPES = [  # lanes, bytes out, bytes of a narrow result
    *((lanes, width, 0) for lanes in (1, 2, 4, 16) for width in (1, 2, 4, 16, 64)),
    *((lanes, width, 1) for lanes, width in (
        (1, 1), (1, 2), (1, 64), (2, 4), (4, 4), (4, 16), (8, 64), (16, 16), (16, 64), (64, 64),
    )),
    *((lanes, width, 2) for lanes, width in (
        (1, 1), (1, 2), (1, 64), (2, 1), (2, 4), (4, 4), (4, 16), (8, 16), (16, 16), (64, 64),
    )),
]


def sender(lanes, width, narrow=0):
    mark = StructLayout({"last": 1, "silent": 1, "narrow": 1, "status": 2, "tag": 16})
    sums = ArrayLayout(signed(32), lanes)
    return StreamPacker(
        bytes_out=width, narrow=narrow, chunk=StructLayout({"sums": sums, "mark": mark})
    )


def draw(rng, lanes, jobs, narrow=0):
    """Jobs, each a list of chunks; one that ends early has sent some before."""
    for tag in range(jobs):
        kind = rng.choice(["results", "results", "results", "silent", "void"])
        count = rng.choice([1, 2, rng.randint(1, 9)]) if kind != "silent" else 1
        is_narrow = rng.randrange(2) if narrow else 0
        yield [
            {
                "sums": [rng.randint(-(1 << 31), (1 << 31) - 1) for _ in range(lanes)],
                "mark": {
                    "narrow": is_narrow,
                    "last": int(n == count - 1),
                    "silent": int(kind == "silent"),
                    "status": rng.choice([1, 2]) if kind == "void" and n == count - 1 else 0,
                    "tag": 0xFF00 + tag,
                },
            }
            for n in range(count)
        ]


def words(job, width, narrow=0):
    """The words of a job, each with the number of its bytes that matter."""
    mark = job[-1]["mark"]
    if mark["silent"]:
        return
    size = narrow if mark["narrow"] else 4
    ended = mark["status"]
    data = b"".join(
        (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        for chunk in (job[:-1] if ended else job) for value in chunk["sums"]
    )
    parts = [data[n : n + width] for n in range(0, len(data), width)]
    if ended:
        # What does not fill a word is lost with the results that are missing.
        parts = [part for part in parts if len(part) == width] + [b""]
    for n, part in enumerate(parts):
        last = n == len(parts) - 1
        yield len(part), {
            "data": int.from_bytes(part, "little"), "last": int(last),
            "status": ended if last else 0, "tag": mark["tag"],
        }


@pytest.mark.parametrize("lanes, width, narrow", SHAPES)
@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0.5), (0.5, 0.9), (0.9, 0.5)])
def test_words_come_low_bytes_first(lanes, width, narrow, idle, stall):
    dut = sender(lanes, width, narrow)
    jobs = list(draw(random.Random(width + lanes), lanes, 14, narrow))
    expected = [word for job in jobs for word in words(job, width, narrow)]
    retired, sent = [], []

    async def source(ctx):
        given = [chunk for job in jobs for chunk in job]
        await send(ctx, dut.chunks, given, idle=idle, seed=1)

    async def sink(ctx):
        for size, want in expected:
            [got] = await receive(ctx, dut.results, 1, stall=stall, seed=len(sent))
            sent.append(got)
            assert {**got, "data": got["data"] & (1 << 8 * size) - 1} == want
        await quiet(ctx, dut.results)

    async def watch(ctx):
        while True:
            port = dut.results
            _, _, retire, taken, last = await ctx.tick().sample(
                dut.retire, port.valid & port.ready, port.payload.last
            )
            assert retire or not (taken and last)
            if retire:
                retired.append(taken and last)

    checks = [checker(dut.results, "results"), checker(dut.chunks, "chunks")]
    simulate(dut, source, sink, background=[watch, *checks], limit=40_000)
    assert retired == [not job[-1]["mark"]["silent"] for job in jobs]


@pytest.mark.parametrize("lanes, width, narrow", [(1, 1, 0), (4, 16, 0), (4, 16, 1), (1, 16, 2)])
def test_a_word_leaves_as_soon_as_it_is_full(lanes, width, narrow):
    dut = sender(lanes, width, narrow)
    mark = {"narrow": int(narrow > 0), "silent": 0, "status": 0, "tag": 1}
    job = [{"sums": [n] * lanes, "mark": {**mark, "last": int(n == 9)}} for n in range(10)]
    size = lanes * (narrow or 4)
    cut, chunks = max(1, size // width), max(1, width // size)

    async def source(ctx):
        await send(ctx, dut.chunks, job)

    async def sink(ctx):
        ctx.set(dut.results.ready, 1)
        valid = [(await ctx.tick().sample(dut.results.valid))[-1] for _ in range(10 * cut + 2)]
        if size >= width:
            assert valid == [1] * 10 * cut + [0, 0]
        else:
            whole = [int(n % chunks == chunks - 1) for n in range(9)]
            assert valid == [0, *whole, 1, 0]  # the last one ends the job

    simulate(dut, source, sink)


def test_a_full_word_that_is_not_taken_holds_the_next_chunk():
    dut = sender(1, 8)

    async def bench(ctx):
        mark = {"last": 0, "silent": 0, "narrow": 0, "status": 0, "tag": 3}
        put(ctx, dut.chunks.payload, {"sums": [1], "mark": mark})
        ctx.set(dut.chunks.valid, 1)
        for _ in range(2):
            assert ctx.get(dut.chunks.ready) and not ctx.get(dut.results.valid)
            await ctx.tick()
        for _ in range(3):
            assert not ctx.get(dut.chunks.ready) and ctx.get(dut.results.valid)
            await ctx.tick()
        ctx.set(dut.results.ready, 1)
        assert ctx.get(dut.chunks.ready)
        await ctx.tick()
        assert ctx.get(dut.chunks.ready) and not ctx.get(dut.results.valid)

    simulate(dut, bench)


@pytest.mark.parametrize("width, wait", [(4, 0), (16, 1)])
def test_a_silent_chunk_needs_no_taker(width, wait):
    dut = sender(1, width)

    async def bench(ctx):
        mark = {"last": 1, "silent": 1, "narrow": 0, "status": 0, "tag": 3}
        put(ctx, dut.chunks.payload, {"sums": [1], "mark": mark})
        ctx.set(dut.chunks.valid, 1)
        assert ctx.get(dut.chunks.ready)
        for _ in range(wait):
            await ctx.tick()
            ctx.set(dut.chunks.valid, 0)
        assert ctx.get(dut.retire) and not ctx.get(dut.results.valid)
        await ctx.tick()
        ctx.set(dut.chunks.valid, 0)
        assert not ctx.get(dut.retire)

    simulate(dut, bench)
