"""The pipeline: stages that move together, chunks in order, and a way round for what is done."""

import pytest
from amaranth.hdl import Signal
from amaranth.lib.data import ArrayLayout, StructLayout

from weft.hw.post.pipeline import Pipeline
from weft.sim.amaranth_bench import checker, plain, play, put, quiet, receive, send, simulate

LANES = 3
CHUNK = StructLayout({"sums": ArrayLayout(8, LANES), "finish": 1, "tag": 8})


class Adder(Pipeline):
    """``sum + (lane + 1) * LATENCY + bias``: a lane's number is added in each stage."""

    def __init__(self, latency):
        self.LATENCY = latency
        super().__init__(chunk=CHUNK, writes={"bias": 4})

    def wants(self, chunk):
        return chunk.finish

    def results(self, m, move, chunks):
        assert len(chunks) == self.LATENCY + 1
        sums = [chunks[0].sums[lane] for lane in range(LANES)]
        for stage in range(self.LATENCY):
            for lane in range(LANES):
                total = Signal(8, name=f"sum_{stage}_{lane}")
                with m.If(move):
                    m.d.sync += total.eq(sums[lane] + lane + 1 + self.bias * (stage == 0))
                sums[lane] = total
        return sums


def chunk(tag, finish):
    return {"sums": [(tag + 7 * lane) % 256 for lane in range(LANES)], "finish": finish, "tag": tag}


def result(one, latency, bias=0):
    if not one["finish"]:
        return one
    sums = [(x + (lane + 1) * latency + bias) % 256 for lane, x in enumerate(one["sums"])]
    return {**one, "sums": sums}


# 1: something is to be done.
KINDS = [int(kind) for kind in "1101001110001011000011111010010110"]
GIVEN = [chunk(tag, kind) for tag, kind in enumerate(KINDS)]


@pytest.mark.parametrize("latency", [1, 2, 5])
@pytest.mark.parametrize("idle, stall", [(0, 0), (0, 0.5), (0.5, 0), (0.5, 0.9), (0.9, 0.5)])
def test_chunks_come_out_in_order_whatever_is_done_to_them(latency, idle, stall):
    dut = Adder(latency)

    async def source(ctx):
        put(ctx, dut.bias, 9)
        await send(ctx, dut.i, GIVEN, idle=idle, seed=1)

    async def sink(ctx):
        due = [result(one, latency, 9) for one in GIVEN]
        assert await receive(ctx, dut.o, len(GIVEN), stall=stall, seed=2) == due
        await quiet(ctx, dut.o)

    simulate(dut, source, sink, background=[checker(dut.o, "o"), checker(dut.i, "i")])


def flow(latency, kinds, ready=None):
    """The tags taken and the tags shown, or None, in each cycle; ``ready`` as of `o`, or always."""
    dut = Adder(latency)
    taken, shown = [], []
    given = [chunk(tag, kind) for tag, kind in enumerate(kinds)]
    cycles = len(given) * (latency + 1) + 4 if ready is None else len(ready)

    async def bench(ctx):
        here = 0
        for t in range(cycles):
            there = here < len(given)
            if there:
                put(ctx, dut.i.payload, given[here])
            ctx.set(dut.i.valid, there)
            ctx.set(dut.o.ready, 1 if ready is None else ready[t])
            ports = dut.i.ready, dut.o.valid, dut.o.payload
            _, _, takes, valid, payload = await ctx.tick().sample(*ports)
            taken.append(here if takes and there else None)
            here += takes and there
            if valid:
                assert plain(payload) == result(given[payload.tag], latency)
            shown.append(payload.tag if valid else None)

    simulate(dut, bench)
    return taken, shown


@pytest.mark.parametrize("latency", [1, 4])
def test_a_chunk_a_cycle_after_the_latency(latency):
    taken, shown = flow(latency, [1] * 6)
    assert taken[:7] == [0, 1, 2, 3, 4, 5, None]
    assert shown[: latency + 7] == [*[None] * latency, 0, 1, 2, 3, 4, 5, None]


def test_what_is_done_goes_by_at_once():
    taken, shown = flow(4, [0] * 4)
    assert taken[:5] == shown[:5] == [0, 1, 2, 3, None]


def test_what_goes_by_waits_until_all_stages_are_empty():
    taken, shown = flow(2, [1, 0, 0, 1, 0])
    assert taken[:9] == [0, None, None, 1, 2, 3, None, None, 4]
    assert shown[:9] == [None, None, 0, 1, 2, None, None, 3, 4]


def test_stages_fill_while_the_last_one_is_not_taken():
    never = [0] * 8
    taken, shown = flow(3, [1] * 6, never)
    assert taken == [0, 1, 2, *[None] * 5]
    assert shown == [None, None, None, *[0] * 5]


def test_a_gap_stays_where_it_is():
    # Stages move together: what is behind a gap does not close it.
    dut = Adder(3)
    first, second = chunk(1, 1), chunk(2, 1)
    script = [
        {"i.payload": first, "i.valid": 1}, {"i.valid": 0},
        {"i.payload": second, "i.valid": 1}, {"i.valid": 0}, {}, {"o.ready": 1},
    ]
    valid, payload = play(dut, script, "o.valid", "o.payload", tail=4)
    assert valid == [0, 0, 0, 1, 1, 1, 0, 1, 0, 0]
    assert (payload[5], payload[7]) == (result(first, 3), result(second, 3))


def test_what_goes_by_waits_for_its_taker():
    taken, shown = flow(2, [0, 1], [0, 0, 1, 0, 0, 0, 1])
    assert taken == [None, None, 0, 1, None, None, None]
    assert shown == [0, 0, 0, None, None, 1, 1]


def test_a_pipeline_must_say_what_it_does():
    with pytest.raises(NotImplementedError):
        Pipeline.wants(None, None)
    with pytest.raises(NotImplementedError):
        Pipeline.results(None, None, None, None)
