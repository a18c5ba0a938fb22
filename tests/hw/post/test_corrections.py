"""The correction terms against sums of Python integers."""

import random

import pytest
from amaranth.hdl import signed
from amaranth.lib.data import ArrayLayout, StructLayout

from weft.geometry import Operand
from weft.hw.control.loader import Write
from weft.hw.post.corrections import Corrector
from weft.hw.post.sums import PairSums
from weft.sim.amaranth_bench import checker, play, put, quiet, receive, send, simulate


def layout(geometry):
    write = Write(
        address=range(geometry.words // geometry.group), segments=geometry.segments,
        pages=geometry.pages, bytes_in=geometry.stream,
    )
    return StructLayout({"valid": 1, "write": write})


def panel(rng, geometry, words, *, carries_on=False, page=0):
    """The values of a panel, [edge][k], and its writes; the bytes past each word are zero."""
    limits = (-128, 127)
    values = [
        [rng.choice([*limits, rng.randint(*limits)]) for _ in range(words * geometry.depth)]
        for _ in range(geometry.edge)
    ]
    writes = []
    for first in range(0, words, geometry.group):
        line = b""
        for word in range(first, min(first + geometry.group, words)):
            for row in values:
                start = word * geometry.depth
                line += bytes(value & 255 for value in row[start : start + geometry.depth])
        line = line.ljust(geometry.segments * geometry.stream, b"\0")
        for segment in range(geometry.segments):
            part = line[segment * geometry.stream : (segment + 1) * geometry.stream]
            whole, behind = segment == geometry.segments - 1, first + geometry.group
            writes.append({
                "line": 0, "segment": segment, "data": int.from_bytes(part, "little"),
                "begin": int(first == 0 and segment == 0 and not carries_on),
                "end": int(whole and behind >= words),
                "page_end": int(whole and (behind >= words or behind % 16 == 0)),
                "page": page + first // 16,
            })
    return values, [{"write": {"valid": 1, "write": write}} for write in writes]


def pairs(values):
    return [sum(row[k] * row[k + 1] for k in range(0, len(row), 2)) for row in values]


CHUNK = {
    1: {"edges": (1, 1), "lanes": 1},
    2: {"edges": (3, 5), "lanes": 2},
    3: {"edges": (4, 3), "lanes": 4},
    4: {"edges": (2, 8), "lanes": 4},
}


@pytest.mark.parametrize("which", CHUNK)
@pytest.mark.parametrize("idle, stall", [(0, 0), (0.5, 0), (0, 0.5), (0.9, 0.5), (0.5, 0.9)])
def test_chunks_leave_corrected(which, idle, stall):
    rng = random.Random(which)
    edges, lanes = CHUNK[which]["edges"], CHUNK[which]["lanes"]
    a, b = (Operand(edge, 2, 64, 16) for edge in edges)
    chunks = -(-b.edge // lanes)
    chunk = StructLayout({
        "sums": ArrayLayout(signed(32), lanes), "row": range(a.edge), "chunk": range(chunks),
        "a_page": range(4), "b_page": range(4), "last": 1, "tag": 16,
    })
    dut = Corrector(geometries=(a, b), chunk=chunk, writes=(layout(a), layout(b)))
    terms, writes = [], []
    for geometry in (a, b):
        both = [panel(rng, geometry, 3, page=page) for page in range(4)]
        terms.append([pairs(values) for values, _ in both])
        writes.append([write["write"] for _, some in both for write in some])
    given, expected = [], []
    for n in range(60):
        one = {
            "sums": [rng.randint(-(1 << 31), (1 << 31) - 1) for _ in range(lanes)],
            "row": rng.randrange(a.edge), "chunk": rng.randrange(chunks),
            "a_page": rng.randrange(4), "b_page": rng.randrange(4), "last": n % 2, "tag": n,
        }
        given.append(one)
        row = terms[0][one["a_page"]][one["row"]]
        columns = terms[1][one["b_page"]][one["chunk"] * lanes :][:lanes]
        sums = [value - row - column for value, column in zip(one["sums"], columns, strict=False)]
        expected.append({**one, "sums": [(s + (1 << 31)) % (1 << 32) - (1 << 31) for s in sums]})

    async def source(ctx):
        for port, some in zip((dut.a, dut.b), writes, strict=True):
            for write in some:
                put(ctx, port, write)
                await ctx.tick()
            put(ctx, port, {"valid": 0})
        for _ in range(PairSums.LATENCY):
            await ctx.tick()
        await send(ctx, dut.i, given, idle=idle, seed=1)

    async def sink(ctx):
        for n, want in enumerate(expected):
            [got] = await receive(ctx, dut.o, 1, stall=stall, seed=n)
            got["sums"] = got["sums"][: len(want["sums"])]
            assert got == want
        await quiet(ctx, dut.o)

    simulate(dut, source, sink, background=[checker(dut.o, "o"), checker(dut.i, "i")])


def test_takes_its_latency_and_a_chunk_a_cycle():
    a = Operand(1, 2, 64, 16)
    chunk = StructLayout({
        "sums": ArrayLayout(signed(32), 1), "row": 1, "chunk": 1, "a_page": 2, "b_page": 2,
    })
    dut = Corrector(geometries=(a, a), chunk=chunk, writes=(layout(a), layout(a)))
    script = [
        {"i.valid": t < 5, "i.payload": {"sums": [t]}, "o.ready": t >= Corrector.LATENCY}
        for t in range(8)  # the first one does not wait until it is asked for
    ]
    valid, out = play(dut, script, "o.valid", "o.payload", tail=1)
    assert valid == [0] * Corrector.LATENCY + [1] * 5 + [0] * 2
    assert [one["sums"] for one in out[Corrector.LATENCY :][:5]] == [[t] for t in range(5)]
