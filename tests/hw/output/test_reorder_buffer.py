"""The reorder buffer: chunks are written later than they are allocated, and popped in order."""

import random

import pytest
from amaranth.lib.data import StructLayout
from tiers import quick

from verif.amaranth_bench import checker, plain, put, simulate
from weft.hw.output.reorder_buffer import ReorderBuffer

CHUNK = StructLayout({"uses_epilogue": 1, "meta": StructLayout({"tag": 8, "last": 1})})
LANES = 2


@pytest.mark.parametrize("depth, sum_latency, epilogue_latency", [
    (1, 1, 0), (2, 1, 0), (4, 3, 0), (8, 1, 5),
])
@pytest.mark.parametrize("output_latency", quick(1, [2, 0, 1]))
@pytest.mark.parametrize("idle, stall", [
    (0, 0), (0.5, 0.9),
    *(pytest.param(*flow, marks=pytest.mark.slow) for flow in ((0.9, 0.5), (0, 0.5), (0.5, 0))),
])
def test_chunks_are_popped_in_order(
    depth, sum_latency, epilogue_latency, idle, stall, output_latency
):
    dut = ReorderBuffer(
        chunk=CHUNK, acc=16, lanes=LANES, depth=depth, sum_latency=sum_latency,
        epilogue_latency=epilogue_latency, output_latency=output_latency,
    )
    rng = random.Random(depth)
    expected, writes, popped = [], {}, []

    async def source(ctx):
        now, tag, last_write = 0, 0, 0
        while len(popped) < 60:
            uses_epilogue = int(epilogue_latency and tag // 7 % 2)
            written = now + (epilogue_latency if uses_epilogue else sum_latency)
            valid = tag < 60 and tag - len(popped) < depth and rng.random() >= idle
            valid = valid and written > last_write  # writes are in order
            values = [rng.randrange(1 << 16) for _ in range(LANES)]
            meta = {"tag": tag % 256, "last": rng.randrange(2)}
            chunk = {"uses_epilogue": uses_epilogue, "meta": meta}
            put(ctx, dut.request, {"valid": int(valid), "chunk": chunk})
            if valid:
                expected.append({"sums": values, "meta": meta})
                writes[written] = uses_epilogue, values
                last_write, tag = written, tag + 1
            uses_epilogue, values = writes.get(now, (0, [0x666] * LANES))
            put(ctx, dut.results if uses_epilogue else dut.sums, values)
            put(ctx, dut.sums if uses_epilogue else dut.results, [0x777] * LANES)
            ctx.set(dut.o.ready, rng.random() >= stall)
            ports = dut.o.valid, dut.o.ready, dut.o.payload
            _, _, valid, ready, payload = await ctx.tick().sample(*ports)
            if valid:
                assert plain(payload) == expected[len(popped)]
            if valid and ready:
                popped.append(now)
                if not idle and not stall and depth > sum_latency + output_latency + 1:
                    assert now - output_latency in writes  # without a pause
            now += 1

    simulate(dut, source, background=[checker(dut.o, "o")])
