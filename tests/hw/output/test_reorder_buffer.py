"""The queue: chunks land in the places kept for them, and leave in order."""

import random

import pytest
from amaranth.lib.data import StructLayout

from weft.hw.output.reorder_buffer import ReorderBuffer
from weft.sim.amaranth_bench import checker, plain, put, simulate

CHUNK = StructLayout({"finishes": 1, "mark": StructLayout({"tag": 8, "last": 1})})
LANES = 2


def queue(*, places, raw, finished, landing):
    return ReorderBuffer(
        chunk=CHUNK, acc=16, lanes=LANES, places=places, raw=raw, finished=finished,
        landing=landing,
    )


@pytest.mark.parametrize("places, raw, finished", [(1, 1, 0), (2, 1, 0), (4, 3, 0), (8, 1, 5)])
@pytest.mark.parametrize("late", [0, 1, 2])
@pytest.mark.parametrize("idle, stall", [(0, 0), (0, 0.5), (0.5, 0), (0.5, 0.9), (0.9, 0.5)])
def test_chunks_land_and_leave_in_order(places, raw, finished, idle, stall, late):
    dut = queue(places=places, raw=raw, finished=finished, landing=late)
    rng = random.Random(places)
    expected, landing, taken = [], {}, []

    async def source(ctx):
        now, tag, latest = 0, 0, 0
        while len(taken) < 60:
            finishes = int(finished and tag // 7 % 2)
            lands = now + (finished if finishes else raw)
            goes = tag < 60 and tag - len(taken) < places and rng.random() >= idle
            goes = goes and lands > latest  # they land in order
            values = [rng.randrange(1 << 16) for _ in range(LANES)]
            chunk = {"finishes": finishes, "mark": {"tag": tag % 256, "last": rng.randrange(2)}}
            put(ctx, dut.chunks, {"valid": int(goes), "chunk": chunk})
            if goes:
                expected.append({"sums": values, "mark": chunk["mark"]})
                landing[lands] = finishes, values
                latest, tag = lands, tag + 1
            finishes, values = landing.get(now, (0, [0x666] * LANES))
            put(ctx, dut.results if finishes else dut.sums, values)
            put(ctx, dut.sums if finishes else dut.results, [0x777] * LANES)
            ctx.set(dut.o.ready, rng.random() >= stall)
            ports = dut.o.valid, dut.o.ready, dut.o.payload
            _, _, valid, ready, payload = await ctx.tick().sample(*ports)
            if valid:
                assert plain(payload) == expected[len(taken)]
            if valid and ready:
                taken.append(now)
                if not idle and not stall and places > raw + late + 1:
                    assert now - late in landing  # at once
            now += 1

    simulate(dut, source, background=[checker(dut.o, "o")])
