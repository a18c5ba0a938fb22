"""Sums over what is loaded, panel by panel and page by page, against sums of Python integers."""

import random

import pytest
from amaranth.lib.data import StructLayout

from weft.geometry import Operand
from weft.hw.control.loader import Write
from weft.hw.post.sums import PairSums, RowSums
from weft.sim.amaranth_bench import play

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


def plain(values):
    return [sum(row) for row in values]


PAIRS = [pytest.param(PairSums, pairs, *g.values, id=f"pairs-{g.id}") for g in GEOMETRIES]
ODD = [
    pytest.param(Operand(1, 1, 64, 1), id="byte-of-byte"),
    pytest.param(Operand(3, 1, 64, 16), id="group-4-and-padding"),
    pytest.param(Operand(5, 3, 64, 4), id="4-segments-and-padding"),
]
ROWS = [pytest.param(RowSums, plain, *g.values, id=f"rows-{g.id}") for g in GEOMETRIES + ODD]
BOTH = pytest.mark.parametrize("sums, due, geometry", PAIRS + ROWS)
KINDS = pytest.mark.parametrize("sums, due", [(PairSums, pairs), (RowSums, plain)])


@BOTH
@pytest.mark.parametrize("idle", [0, 0.5])
def test_each_panel_has_its_sums(sums, due, geometry, idle):
    rng = random.Random(geometry.edge)
    script, expected = [], []
    noise = {"data": (1 << 8 * geometry.stream) - 1, "begin": 1, "page_end": 1, "page": 0}
    for page in [*range(geometry.pages), 0, 1]:
        values, writes = panel(rng, geometry, rng.randint(1, 16), page=page)
        for write in writes:
            while rng.random() < idle:
                script.append({"write": {"valid": 0, "write": noise}})
            script.append(write)
        expected = [e for e in expected if e[0] != page] + [(page, due(values))]
    script += [{"write": {"valid": 0}}] * sums.LATENCY
    script += [{"read": 1, "page": page} for page, _ in expected]
    (found,) = play(sums(geometry=geometry, write=layout(geometry)), script, "sums", tail=1)
    assert found[-len(expected) :] == [want for _, want in expected]


@BOTH
def test_each_page_has_the_sums_up_to_its_end(sums, due, geometry):
    rng = random.Random(3)
    words = min(40, geometry.words)
    values, script = panel(rng, geometry, words)
    script += [{"write": {"valid": 0}}] * sums.LATENCY
    pages = range(-(-words // 16))
    script += [{"read": 1, "page": page} for page in pages]
    (found,) = play(sums(geometry=geometry, write=layout(geometry)), script, "sums", tail=1)
    ends = [min(words, 16 * (page + 1)) * geometry.depth for page in pages]
    assert found[-len(pages) :] == [due([row[:end] for row in values]) for end in ends]


@KINDS
def test_a_panel_that_carries_on_adds_to_the_one_before(sums, due):
    rng = random.Random(4)
    geometry = Operand(3, 2, 64, 16)
    first, script = panel(rng, geometry, 20)
    second, more = panel(rng, geometry, 5, carries_on=True, page=2)
    script += [*more, *[{"write": {"valid": 0}}] * sums.LATENCY, {"read": 1, "page": 2}]
    (found,) = play(sums(geometry=geometry, write=layout(geometry)), script, "sums", tail=1)
    assert found[-1] == due([x + y for x, y in zip(first, second, strict=True)])


@pytest.mark.parametrize("sums, one", [(PairSums, 6), (RowSums, 5)])
@pytest.mark.parametrize("late", [-1, 0])
def test_an_entry_is_there_after_the_latency(sums, one, late):
    geometry = Operand(1, 2, 32, 2)
    _, [write] = panel(random.Random(5), geometry, 1)
    write["write"]["write"]["data"] = 0x0302
    wait = [{"write": {"valid": 0}}] * (sums.LATENCY - 1 + late)
    script = [write, *wait, {"write": {"valid": 0}, "read": 1}, {"read": 0}]
    (found,) = play(sums(geometry=geometry, write=layout(geometry)), script, "sums", tail=2)
    assert found[-3:] == [[0 if late else one]] * 3  # and stays while nothing is read
