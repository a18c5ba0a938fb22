"""Tests of the payload buffer: payloads end at the end of a job, or when the buffer is full."""

import pytest

from verif.amaranth_bench import plain, pulse, send, simulate, ticks
from weft.hw.serial.frame_transmitter import PayloadBuffer


def word(data, last=0, status=0, tag=5):
    return {"data": data, "last": last, "status": status, "tag": tag}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("bytes_out", [1, 2, 8])
def test_payloads(bytes_out, fast):
    dut = PayloadBuffer(bytes_out=bytes_out, depth=16, target="generic", fast=fast)
    full = 16 // bytes_out
    lengths = [1, full, full + 1]  # words per job
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

    async def payload(ctx):
        while not ctx.get(dut.full):
            await ctx.tick()
        await ticks(ctx, 4)
        data = []
        for n in range(length := ctx.get(dut.length)):
            assert ctx.get(dut.valid) == fast
            data.append(ctx.get(dut.byte))
            if fast and n < length // 2:  # a byte in each cycle
                ctx.set(dut.advance, 1)
                await ctx.tick()
                ctx.set(dut.advance, 0)
            else:
                await pulse(ctx, dut.advance)
                await ticks(ctx, 2)
        meta = plain(ctx.get(dut.meta))
        await pulse(ctx, dut.clear)
        return bytes(data), meta

    async def sink(ctx):
        for tag, job in enumerate(jobs):
            data = b"".join(value.to_bytes(bytes_out, "little") for value in job)
            while data:
                found, meta = await payload(ctx)
                assert found == data[:16]
                data = data[16:]
                ended = not data
                assert meta == {"tag": 7 + tag, "last": ended, "status": 2 * ended}
        await ticks(ctx, 10)
        assert not ctx.get(dut.full) and ctx.get(dut.length) == 0

    simulate(dut, source, sink)
