"""The stream packer: chunks become words of any width, and a job ends with its last chunk."""

import random

import pytest
from amaranth.hdl import signed
from amaranth.lib.data import ArrayLayout, StructLayout

from verif.amaranth_bench import checker, put, quiet, receive, send, simulate
from weft.hw.output.stream_packer import StreamPacker

SHAPES = [  # lanes, bytes_out, bytes of a narrow result
    *((lanes, width, 0) for lanes in (1, 2, 4, 16) for width in (1, 2, 4, 16, 64)),
    *((lanes, width, 1) for lanes, width in (
        (1, 1), (1, 2), (1, 64), (2, 4), (4, 4), (4, 16), (8, 64), (16, 16), (16, 64), (64, 64),
    )),
    *((lanes, width, 2) for lanes, width in (
        (1, 1), (1, 2), (1, 64), (2, 1), (2, 4), (4, 4), (4, 16), (8, 16), (16, 16), (64, 64),
    )),
]


# Each number of lanes, each width and each narrow result is in one of them.
QUICK = [
    (1, 64, 0), (2, 2, 0), (4, 1, 0), (16, 4, 0), (4, 16, 0), (16, 64, 0),
    (1, 2, 1), (2, 4, 1), (8, 64, 1), (16, 16, 1), (1, 1, 2), (4, 4, 2), (8, 16, 2), (64, 64, 2),
]


def packer(lanes, width, narrow=0):
    meta = StructLayout({"last": 1, "suppress": 1, "narrow": 1, "status": 2, "tag": 16})
    sums = ArrayLayout(signed(32), lanes)
    return StreamPacker(
        bytes_out=width, narrow=narrow, chunk=StructLayout({"sums": sums, "meta": meta})
    )


def draw(rng, lanes, jobs, narrow=0):
    """Random jobs, each a list of chunks; a failed job may have results before its end."""
    for tag in range(jobs):
        kind = rng.choice(["results", "results", "results", "suppress", "failed"])
        count = rng.choice([1, 2, rng.randint(1, 9)]) if kind != "suppress" else 1
        is_narrow = rng.randrange(2) if narrow else 0
        yield [
            {
                "sums": [rng.randint(-(1 << 31), (1 << 31) - 1) for _ in range(lanes)],
                "meta": {
                    "narrow": is_narrow,
                    "last": int(n == count - 1),
                    "suppress": int(kind == "suppress"),
                    "status": rng.choice([1, 2]) if kind == "failed" and n == count - 1 else 0,
                    "tag": 0xFF00 + tag,
                },
            }
            for n in range(count)
        ]


def words(job, width, narrow=0):
    """The words of a job, each with the number of its valid bytes."""
    meta = job[-1]["meta"]
    if meta["suppress"]:
        return
    size = narrow if meta["narrow"] else 4
    status = meta["status"]
    data = b"".join(
        (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        for chunk in (job[:-1] if status else job) for value in chunk["sums"]
    )
    parts = [data[n : n + width] for n in range(0, len(data), width)]
    if status:
        # Results that do not fill a word are lost.
        parts = [part for part in parts if len(part) == width] + [b""]
    for n, part in enumerate(parts):
        last = n == len(parts) - 1
        yield len(part), {
            "data": int.from_bytes(part, "little"), "last": int(last),
            "status": status if last else 0, "tag": meta["tag"],
        }


@pytest.mark.parametrize("lanes, width, narrow", [
    shape if shape in QUICK else pytest.param(*shape, marks=pytest.mark.slow) for shape in SHAPES
])
@pytest.mark.parametrize("idle, stall", [
    (0.5, 0.7), pytest.param(0, 0, marks=pytest.mark.long),
])
def test_words_come_low_bytes_first(lanes, width, narrow, idle, stall):
    dut = packer(lanes, width, narrow)
    jobs = list(draw(random.Random(width + lanes), lanes, 14, narrow))
    expected = [word for job in jobs for word in words(job, width, narrow)]
    retired, received = [], []

    async def source(ctx):
        chunks = [chunk for job in jobs for chunk in job]
        await send(ctx, dut.chunks, chunks, idle=idle, seed=1)

    async def sink(ctx):
        for size, expected_word in expected:
            [word] = await receive(ctx, dut.results, 1, stall=stall, seed=len(received))
            received.append(word)
            assert {**word, "data": word["data"] & (1 << 8 * size) - 1} == expected_word
        await quiet(ctx, dut.results)

    async def watch(ctx):
        while True:
            port = dut.results
            _, _, retire, fire, last = await ctx.tick().sample(
                dut.retire, port.valid & port.ready, port.payload.last
            )
            assert retire or not (fire and last)
            if retire:
                retired.append(fire and last)

    checks = [checker(dut.results, "results"), checker(dut.chunks, "chunks")]
    simulate(dut, source, sink, background=[watch, *checks], limit=40_000)
    assert retired == [not job[-1]["meta"]["suppress"] for job in jobs]


@pytest.mark.parametrize("lanes, width, narrow", [(1, 1, 0), (4, 16, 0), (4, 16, 1), (1, 16, 2)])
def test_a_word_is_sent_as_soon_as_it_is_full(lanes, width, narrow):
    dut = packer(lanes, width, narrow)
    meta = {"narrow": int(narrow > 0), "suppress": 0, "status": 0, "tag": 1}
    job = [{"sums": [n] * lanes, "meta": {**meta, "last": int(n == 9)}} for n in range(10)]
    size = lanes * (narrow or 4)
    word_count, chunk_count = max(1, size // width), max(1, width // size)

    async def source(ctx):
        await send(ctx, dut.chunks, job)

    async def sink(ctx):
        ctx.set(dut.results.ready, 1)
        cycles = 10 * word_count + 2
        valid = [(await ctx.tick().sample(dut.results.valid))[-1] for _ in range(cycles)]
        if size >= width:
            assert valid == [1] * 10 * word_count + [0, 0]
        else:
            full = [int(n % chunk_count == chunk_count - 1) for n in range(9)]
            assert valid == [0, *full, 1, 0]  # the last word ends the job

    simulate(dut, source, sink)


def test_a_full_word_stalls_the_next_chunk():
    dut = packer(1, 8)

    async def bench(ctx):
        meta = {"last": 0, "suppress": 0, "narrow": 0, "status": 0, "tag": 3}
        put(ctx, dut.chunks.payload, {"sums": [1], "meta": meta})
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
def test_a_suppressed_chunk_needs_no_ready(width, wait):
    dut = packer(1, width)

    async def bench(ctx):
        meta = {"last": 1, "suppress": 1, "narrow": 0, "status": 0, "tag": 3}
        put(ctx, dut.chunks.payload, {"sums": [1], "meta": meta})
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
