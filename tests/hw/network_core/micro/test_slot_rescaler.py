"""The rescaler that counts slots: all results of a job against the golden model, in order."""

import random

import numpy as np
import pytest
from micro_results import JOB, LINES, TABLE, expected, parameters
from network_cores import MICRO
from tiers import quick

from verif.amaranth_bench import plain, put, simulate
from weft.hw.network_core.micro.output import SlotRescaler
from weft.latencies import MEMORY_READ
from weft.network_core import latencies

CORE = MICRO.array


class Bench:
    """Requests chunks when the rescaler is ready, or later; memories answer in time."""

    def __init__(self, *, idle, seed):
        self.dut, self.rng, self.idle = SlotRescaler(MICRO), random.Random(seed), idle

    def value(self):
        edges = [-(1 << 31), (1 << 31) - 1, 0, -1]
        return self.rng.choice([*edges, self.rng.randint(-70000, 70000)])

    async def job(self, ctx, kind, count):
        """Run a job; returns its chunks (sums, line, added byte), results, and request cycles."""
        dut, rng = self.dut, self.rng
        put(ctx, dut.job.fields, {**plain(ctx.get(dut.job.fields)), **JOB, "add": kind == "add",
                           "sums": kind == "sums"})
        ctx.set(dut.job.start, 1)
        await ctx.tick()
        ctx.set(dut.job.start, 0)
        chunks, results, requests = [], [], []
        added = [rng.randrange(-128, 128) for _ in range(count)]
        taken, now, comes = 0, 0, []
        lines, words, held = [0] * MEMORY_READ, [0] * MEMORY_READ, 0
        due = {}  # the cycle in which a chunk's sums are needed
        put(ctx, dut.added.valid, 1)
        while len(results) < count:
            asks = len(chunks) < count and ctx.get(dut.ready) and rng.random() >= self.idle
            if asks:
                line, sums = rng.randrange(len(LINES)), self.value()
                chunks.append((sums, line, added[len(chunks)]))
                due[now + latencies.join(CORE)] = sums
                requests.append(now)
            put(ctx, dut.request.valid, int(asks))
            put(ctx, dut.request.chunk.line, line if asks else 0)
            put(ctx, dut.sums, [due.get(now, 123456789)])
            put(ctx, dut.added.payload, [added[min(taken, count - 1)]])
            put(ctx, dut.lines.data, [parameters(lines.pop(0), held)])
            put(ctx, dut.table.data, [TABLE[words.pop(0)]])
            names = "results", "results_next", "biased", "biased_next"
            line, table, *values, take, reads = (await ctx.tick().sample(
                dut.lines.address, dut.table.address, *(getattr(dut, name) for name in names),
                dut.added.ready, dut.reads_multiplier,
            ))[2:]
            held = lines[0] if reads else held
            found = dict(zip(names, values, strict=True))
            taken += take
            lines.append(line)
            words.append(plain(table)[0])
            comes.append((found["results_next"], found["biased_next"]))
            if now >= dut.NEXT and comes[now - dut.NEXT][0]:
                results.append((now, plain(found["results"])[0]))
            if now >= 1 and comes[now - 1][1]:
                results.append((now, plain(found["biased"])[0]))
            now += 1
            assert now < 4000
        assert taken == (count if kind == "add" else 0)
        return chunks, results, requests


SLOTS = {"plain": 1, "add": 2, "sums": 4}  # from a chunk to the next one
LATENCY = {
    "plain": latencies.rescale(MICRO), "add": latencies.rescale_total(MICRO),
    "sums": latencies.join(CORE) + 1,
}


@pytest.mark.parametrize("idle", quick(1, [0.6, 0]))
def test_results_of_jobs(idle):
    """Without a reset between jobs, and right behind the last result of a job."""
    bench = Bench(idle=idle, seed=4)

    async def run(ctx):
        for kind in ("plain", "add", "sums", "plain", "sums", "add", "add"):
            chunks, results, requests = await bench.job(ctx, kind, 16)
            assert [y for _, y in results] == [expected(kind, *chunk) for chunk in chunks], kind
            assert [now for now, _ in results] == [at + LATENCY[kind] for at in requests]
            slots = np.diff(requests) / CORE.scale_cycles
            assert (slots % SLOTS[kind] == 0).all() and slots.min() == SLOTS[kind]
            assert idle == 0 or slots.max() > SLOTS[kind]
            assert idle or (slots == SLOTS[kind]).all()

    simulate(bench.dut, run)
