"""The writer: beats become bursts on AXI4, and responses the ends of jobs, in order."""

import random

import pytest

from verif.amaranth_bench import put, simulate, ticks
from verif.axi_memory import AxiMemory
from weft.commands import Status
from weft.hw.dma.writer import Writer

WIDTH, SIZE = 4, 1 << 12


def random_bursts(rng, count):
    """Yield bursts as lists of beats, some of which end a job; and ends of jobs without beats."""
    at = 0
    for n in range(count):
        end = rng.random() < 0.5
        job = {"tag": n, "status": rng.randrange(3) if end else 0, "job_last": int(end)}
        if rng.random() < 0.2:
            yield [{"data": 0, "strb": 0, "addr": 0, "index": 0, "no_data": 1, "last": 1, **job}]
            continue
        length = rng.choice([1, 2, 16])
        at += rng.randrange(3) * WIDTH
        if at % 64 + length * WIDTH > 64:
            at = -(-at // 64) * 64
        yield [
            {
                "data": rng.getrandbits(8 * WIDTH), "strb": rng.getrandbits(WIDTH), "addr": at,
                "index": i, "last": int(i == length - 1), "no_data": 0, **job,
                "job_last": int(end and i == length - 1),
            } for i in range(length)
        ]
        at += length * WIDTH


@pytest.mark.parametrize("pause, idle", [(0, 0), (0.6, 0), (0.3, 0.6)])
def test_writes(pause, idle):
    rng, dut = random.Random(5), Writer(data_bytes=WIDTH, target="generic")
    memory = AxiMemory(dut, data_bytes=WIDTH, size=SIZE, pause=pause, latency=25, seed=2)
    bursts = [*random_bursts(rng, 70)]
    bursts.append([{
        "data": 0, "strb": 0, "addr": 0, "index": 0, "no_data": 1, "last": 1, "job_last": 1,
        "tag": 99, "status": 1,
    }])
    expected, ends, found, errors = bytearray(SIZE), [], [], []
    ends_its_job = next(b[-1] for b in bursts[40:] if b[-1]["job_last"] and not b[-1]["no_data"])
    memory.bad, job_failed = {64, 68, 640, ends_its_job["addr"]}, False
    for burst in bursts:
        for n, beat in enumerate(burst):
            for byte in range(WIDTH):
                place = beat["addr"] + n * WIDTH + byte
                if beat["strb"] >> byte & 1 and place - place % WIDTH not in memory.bad:
                    expected[place] = beat["data"] >> 8 * byte & 255
        job_failed |= not burst[0]["no_data"] and any(
            beat["addr"] + n * WIDTH in memory.bad for n, beat in enumerate(burst)
        )
        if burst[-1]["job_last"]:
            ends.append((burst[-1]["tag"], burst[-1]["status"] | Status.WRITE_ERROR * job_failed))
            job_failed = False
    failed_bursts = sum(
        any(b["addr"] + n * WIDTH in memory.bad for n, b in enumerate(burst))
        for burst in bursts if not burst[0]["no_data"]
    )

    async def source(ctx):
        for beat in [beat for burst in bursts for beat in burst]:
            while not ctx.get(dut.room) or rng.random() < idle:
                await ctx.tick()
            put(ctx, dut.beats, {"valid": 1, "beat": beat})
            await ctx.tick()
            put(ctx, dut.beats.valid, 0)
        await ticks(ctx, 10)
        while not ctx.get(dut.idle):
            await ctx.tick()
        await ticks(ctx, 2)
        assert memory.idle

    async def watch(ctx):
        watched = dut.job_done, dut.tag, dut.status, dut.error
        async for _, _, job_done, tag, status, error in ctx.tick().sample(*watched):
            errors.append(error)
            if job_done:
                found.append((tag, status))

    async def w_never_pauses_in_a_burst(ctx):
        inside = False
        async for _, _, valid, ready, last in ctx.tick().sample(
            dut.w.valid, dut.w.ready, dut.w.payload.last
        ):
            assert valid or not inside
            if valid and ready:
                inside = not last

    simulate(
        dut, source, background=[memory.run_writes, watch, w_never_pauses_in_a_burst], limit=20_000
    )
    assert memory.memory == expected
    assert found == ends
    assert sum(errors) == failed_bursts > 0
