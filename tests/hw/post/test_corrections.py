"""The correction terms against sums of Python integers."""

import random

import pytest
from amaranth.hdl import signed
from amaranth.lib.data import ArrayLayout, StructLayout

from weft.geometry import Operand
from weft.hw.control.loader import Write
from weft.hw.post.corrections import Corrector, PairSums
from weft.sim.amaranth_bench import checker, play, put, quiet, receive, send, simulate

GEOMETRIES = [
    pytest.param(Operand(1, 2, 64, 2), id="pair-of-pair"),
    pytest.param(Operand(2, 2, 64, 16), id="group-4"),
    pytest.param(Operand(3, 2, 64, 16), id="group-2-and-padding"),
    pytest.param(Operand(3, 4, 64, 4), id="3-segments"),
    pytest.param(Operand(5, 2, 64, 4), id="3-segments-and-padding"),
    pytest.param(Operand(1, 64, 32, 16), id="4-segments-of-one-row"),
]


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


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("idle", [0, 0.5])
def test_each_panel_has_its_sums(geometry, idle):
    rng = random.Random(geometry.edge)
    script, expected = [], []
    noise = {"data": (1 << 8 * geometry.stream) - 1, "begin": 1, "page_end": 1, "page": 0}
    for page in [*range(geometry.pages), 0, 1]:
        values, writes = panel(rng, geometry, rng.randint(1, 16), page=page)
        for write in writes:
            while rng.random() < idle:
                script.append({"write": {"valid": 0, "write": noise}})
            script.append(write)
        expected = [e for e in expected if e[0] != page] + [(page, pairs(values))]
    script += [{"write": {"valid": 0}}] * PairSums.LATENCY
    script += [{"read": 1, "page": page} for page, _ in expected]
    (sums,) = play(PairSums(geometry=geometry, write=layout(geometry)), script, "sums", tail=1)
    assert sums[-len(expected) :] == [want for _, want in expected]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_each_page_has_the_sums_up_to_its_end(geometry):
    rng = random.Random(3)
    words = min(40, geometry.words)
    values, script = panel(rng, geometry, words)
    script += [{"write": {"valid": 0}}] * PairSums.LATENCY
    pages = range(-(-words // 16))
    script += [{"read": 1, "page": page} for page in pages]
    (sums,) = play(PairSums(geometry=geometry, write=layout(geometry)), script, "sums", tail=1)
    ends = [min(words, 16 * (page + 1)) * geometry.depth for page in pages]
    assert sums[-len(pages) :] == [pairs([row[:end] for row in values]) for end in ends]


def test_a_panel_that_carries_on_adds_to_the_one_before():
    rng = random.Random(4)
    geometry = Operand(3, 2, 64, 16)
    first, script = panel(rng, geometry, 20)
    second, more = panel(rng, geometry, 5, carries_on=True, page=2)
    script += [*more, *[{"write": {"valid": 0}}] * PairSums.LATENCY, {"read": 1, "page": 2}]
    (sums,) = play(PairSums(geometry=geometry, write=layout(geometry)), script, "sums", tail=1)
    assert sums[-1] == pairs([x + y for x, y in zip(first, second, strict=True)])


@pytest.mark.parametrize("late", [-1, 0])
def test_an_entry_is_there_after_the_latency(late):
    geometry = Operand(1, 2, 32, 2)
    _, [write] = panel(random.Random(5), geometry, 1)
    write["write"]["write"]["data"] = 0x0302
    wait = [{"write": {"valid": 0}}] * (PairSums.LATENCY - 1 + late)
    script = [write, *wait, {"write": {"valid": 0}, "read": 1}, {"read": 0}]
    (sums,) = play(PairSums(geometry=geometry, write=layout(geometry)), script, "sums", tail=2)
    assert sums[-3:] == [[0 if late else 6]] * 3  # and stays while nothing is read


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
