"""Result words become frames of bytes: at a job's end, or when a frame is full."""

import pytest

from weft.hw.serial.payload_buffer import PayloadBuffer
from weft.sim.amaranth_bench import plain, send, simulate, ticks


def word(data, last=0, status=0, tag=5):
    return {"data": data, "last": last, "status": status, "tag": tag}


@pytest.mark.parametrize("bytes_out", [1, 2, 8])
def test_frames(bytes_out):
    dut = PayloadBuffer(bytes_out=bytes_out, depth=16, target="generic")
    full = 16 // bytes_out
    lengths = [1, full, full + 1]  # of jobs, in words
    jobs = [
        [(n * 57 + job * 11 + 3) % 256 ** bytes_out for n in range(length)]
        for job, length in enumerate(lengths)
    ]
    words = [
        word(value, n == len(job) - 1, 2 * (n == len(job) - 1), 7 + tag)
        for tag, job in enumerate(jobs) for n, value in enumerate(job)
    ]

    async def source(ctx):
        await send(ctx, dut.results, words)

    async def frame(ctx):
        while not ctx.get(dut.full):
            await ctx.tick()
        await ticks(ctx, 4)
        data = []
        for _ in range(ctx.get(dut.length)):
            data.append(ctx.get(dut.byte))
            ctx.set(dut.take, 1)
            await ctx.tick()
            ctx.set(dut.take, 0)
            await ticks(ctx, 2)
        facts = plain(ctx.get(dut.facts))
        ctx.set(dut.done, 1)
        await ctx.tick()
        ctx.set(dut.done, 0)
        return bytes(data), facts

    async def sink(ctx):
        for tag, job in enumerate(jobs):
            data = b"".join(value.to_bytes(bytes_out, "little") for value in job)
            while data:
                found, facts = await frame(ctx)
                assert found == data[:16]
                data = data[16:]
                ended = not data
                assert facts == {"tag": 7 + tag, "last": ended, "status": 2 * ended}
        await ticks(ctx, 10)
        assert not ctx.get(dut.full) and ctx.get(dut.length) == 0

    simulate(dut, source, sink)
