"""The sender: chunks packed into words or cut, jobs ended with their last."""

import random

import pytest
from amaranth.hdl import signed
from amaranth.lib.data import ArrayLayout, StructLayout

from weft.hw.post.sender import Sender
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
    # The second bit is somebody else's affair.
    finish = StructLayout({"one": 1, "other": 1} if narrow else {})
    return Sender(bytes_out=width, narrow=narrow, chunk=StructLayout({
        "sums": ArrayLayout(signed(32), lanes), "finish": finish, "last": 1, "silent": 1,
        "status": 2, "tag": 16,
    }))


def draw(rng, lanes, jobs, narrow=0):
    """Jobs, each a list of chunks; one that ends early has sent some before."""
    for tag in range(jobs):
        kind = rng.choice(["results", "results", "results", "silent", "void"])
        count = rng.choice([1, 2, rng.randint(1, 9)]) if kind != "silent" else 1
        finish = {"one": rng.randrange(2), "other": rng.randrange(2)} if narrow else {}
        yield [
            {
                "sums": [rng.randint(-(1 << 31), (1 << 31) - 1) for _ in range(lanes)],
                "finish": finish,
                "last": int(n == count - 1),
                "silent": int(kind == "silent"),
                "status": rng.choice([1, 2]) if kind == "void" and n == count - 1 else 0,
                "tag": 0xFF00 + tag,
            }
            for n in range(count)
        ]


def words(job, width, narrow=0):
    """The words of a job, each with the number of its bytes that matter."""
    if job[-1]["silent"]:
        return
    size = narrow if job[0]["finish"].get("one") else 4
    ended = job[-1]["status"]
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
            "status": ended if last else 0, "tag": job[0]["tag"],
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
            port = dut.chunks
            _, _, retire, taken, last = await ctx.tick().sample(
                dut.retire, port.valid & port.ready, port.payload.last
            )
            assert retire == (taken and last)
            if retire:
                retired.append(len(sent))

    checks = [checker(dut.results, "results"), checker(dut.chunks, "chunks")]
    simulate(dut, source, sink, background=[watch, *checks], limit=40_000)
    assert len(retired) == len(jobs)


@pytest.mark.parametrize("lanes, width, narrow", [(1, 1, 0), (4, 16, 1), (1, 16, 2)])
def test_a_word_leaves_every_cycle(lanes, width, narrow):
    dut = sender(lanes, width, narrow)
    job = next(job for job in draw(random.Random(5), lanes, 99) if len(job) > 4)
    job = [{**chunk, "status": 0, "silent": 0} for chunk in job]
    count = len(list(words(job, width)))
    chunks = max(1, width // (4 * lanes))

    async def source(ctx):
        await send(ctx, dut.chunks, job)

    async def sink(ctx):
        ctx.set(dut.results.ready, 1)
        cycles = count * chunks if chunks == 1 else len(job)
        valid = [(await ctx.tick().sample(dut.results.valid))[-1] for _ in range(cycles + 1)]
        whole = [int(n % chunks == chunks - 1) for n in range(cycles)]
        whole[-1] = 1  # the job's end
        assert valid == [*whole, 0]

    simulate(dut, source, sink)


def test_a_part_of_a_word_needs_no_taker():
    dut = sender(1, 8)

    async def bench(ctx):
        chunk = {"sums": [1], "last": 0, "silent": 0, "status": 0, "tag": 3}
        put(ctx, dut.chunks.payload, chunk)
        ctx.set(dut.chunks.valid, 1)
        assert ctx.get(dut.chunks.ready) and not ctx.get(dut.results.valid)
        await ctx.tick()
        assert not ctx.get(dut.chunks.ready) and ctx.get(dut.results.valid)

    simulate(dut, bench)


def test_a_silent_chunk_needs_no_taker():
    dut = sender(1, 4)

    async def bench(ctx):
        put(ctx, dut.chunks.payload, {"sums": [1], "last": 1, "silent": 1, "status": 0, "tag": 3})
        ctx.set(dut.chunks.valid, 1)
        assert ctx.get(dut.chunks.ready) and ctx.get(dut.retire) and not ctx.get(dut.results.valid)

    simulate(dut, bench)
