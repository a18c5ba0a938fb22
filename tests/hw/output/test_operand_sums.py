"""Sums of loaded operands, by panel and by page, against sums of Python integers."""

import random

import pytest
from tiers import quick

from verif.amaranth_bench import play
from verif.loader_model import random_panel, write_port
from weft.geometry import Operand
from weft.hw.output.operand_sums import PairSums, RowSums

GEOMETRIES = [
    pytest.param(Operand(1, 2, 64, 2), id="pair-of-pair"),
    pytest.param(Operand(2, 2, 64, 16), id="group-4"),
    pytest.param(Operand(3, 2, 64, 16), id="group-2-and-padding"),
    pytest.param(Operand(3, 4, 64, 4), id="3-segments"),
    pytest.param(Operand(5, 2, 64, 4), id="3-segments-and-padding"),
    pytest.param(Operand(1, 64, 32, 16), id="4-segments-of-one-row"),
    pytest.param(Operand(12, 2, 64, 16), id="2-folds"),
    pytest.param(Operand(5, 4, 64, 8), id="3-folds"),
]


def sums_of(kind, *geometries, counts=None):
    """The component for one operand or several."""
    return kind(
        geometries=geometries, writes=[write_port(g) for g in geometries],
        counts=counts or [1] * len(geometries), target="generic",
    )


def for_operand(script, n=0):
    """The script, with the ports of operand ``n``."""
    return [{f"{name}_{n}": value for name, value in cycle.items()} for cycle in script]


def reads(geometry, pages, count=1):
    """A script that reads all sums of ``pages``; a function that turns its trace into rows."""
    parts = -(-geometry.edge // count)
    script = [{"page": page, "index": n} for page in pages for n in range(parts)]

    def collect(found):
        found = found[len(found) - len(script) :]
        rows = [sum(found[n : n + parts], []) for n in range(0, len(found), parts)]
        return [row[: geometry.edge] for row in rows]

    return script, collect


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
BOTH = pytest.mark.parametrize("sums, model, geometry", PAIRS + ROWS)
KINDS = pytest.mark.parametrize("sums, model", [(PairSums, pairs), (RowSums, plain)])


@BOTH
@pytest.mark.parametrize("idle, count", quick(2, [(0.5, 1), (0, 4), (0, 1), (0, 2)]))
def test_each_panel_has_its_sums(sums, model, geometry, idle, count):
    rng = random.Random(geometry.edge)
    script, expected = [], []
    noise = {"data": (1 << 8 * geometry.stream) - 1, "begin": 1, "page": 0}
    for page in [*range(geometry.pages), 0, 1]:
        values, writes = random_panel(rng, geometry, rng.randint(1, 16), page=page)
        for write in writes:
            while rng.random() < idle:
                script.append({"write": {"valid": 0, "write": noise}})
            script.append(write)
        expected = [e for e in expected if e[0] != page] + [(page, model(values))]
    dut = sums_of(sums, geometry, counts=[count])
    script += [{"write": {"valid": 0}}] * dut.latency
    read, collect = reads(geometry, [page for page, _ in expected], count)
    (found,) = play(dut, for_operand(script + read), "sums_0", tail=dut.READ)
    assert collect(found) == [sums for _, sums in expected]


@BOTH
def test_each_page_has_the_sums_up_to_its_end(sums, model, geometry):
    rng = random.Random(3)
    words = min(40, geometry.words)
    values, script = random_panel(rng, geometry, words)
    dut = sums_of(sums, geometry)
    script += [{"write": {"valid": 0}}] * dut.latency
    pages = range(-(-words // 16))
    read, collect = reads(geometry, pages)
    (found,) = play(dut, for_operand(script + read), "sums_0", tail=dut.READ)
    ends = [min(words, 16 * (page + 1)) * geometry.depth for page in pages]
    assert collect(found) == [model([row[:end] for row in values]) for end in ends]


@KINDS
@pytest.mark.parametrize("edges", [(3, 4), (4, 12), (12, 20)])
def test_operands_in_turn_keep_their_sums(sums, model, edges):
    # Each carries on after the other: panels of so many words, of A, of B, of A...
    rng = random.Random(4)
    geometries = [Operand(edge, 2, 64, 16) for edge in edges]
    dut = sums_of(sums, *geometries)
    script, whole = [], [[[] for _ in range(g.edge)] for g in geometries]
    for turn in range(6):
        n, words = turn % 2, rng.randint(1, 16)
        part, writes = random_panel(
            rng, geometries[n], words, continues=turn > 1, page=turn // 2
        )
        script += for_operand([*writes, {"write": {"valid": 0}}], n)
        if n:  # the word is the same for all
            for cycle, one in zip(script[-len(writes) - 1 :], writes, strict=False):
                cycle["write_0"] = {"write": {"data": one["write"]["write"]["data"]}}
        whole[n] = [old + new for old, new in zip(whole[n], part, strict=True)]
    script += [{}] * dut.latency
    for n, geometry in enumerate(geometries):
        read, collect = reads(geometry, [2])
        (found,) = play(dut if not n else sums_of(sums, *geometries), script + for_operand(read, n),
                        f"sums_{n}", tail=dut.READ)
        assert collect(found) == [model(whole[n])]


@pytest.mark.parametrize("sums, one", [(PairSums, 6), (RowSums, 5)])
@pytest.mark.parametrize("late", [-1, 0])
def test_an_entry_is_there_after_the_latency(sums, one, late):
    geometry = Operand(2, 2, 32, 4)
    _, [write] = random_panel(random.Random(5), geometry, 1)
    write["write"]["write"]["data"] = 0x0302
    dut = sums_of(sums, geometry)
    wait = [{"write": {"valid": 0}}] * (dut.latency - 1 + late)
    script = [write, *wait, {"write": {"valid": 0}, "page": 0}, {"page": 1}]
    (found,) = play(dut, for_operand(script), "sums_0", tail=dut.READ - 1)
    assert found[-1] == [0 if late else one]
