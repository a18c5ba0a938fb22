"""The corrector against sums of Python integers."""

import random

import pytest
from amaranth.hdl import Fragment
from amaranth.lib.data import StructLayout

from verif.amaranth_bench import play
from verif.loader_model import random_panel, write_port
from weft.config import Config
from weft.geometry import Operand, operands
from weft.hw.output.operand_sums import PairSums
from weft.hw.output.requantizer import Corrector
from weft.timing import Latencies

SETTLE = 16  # cycles, more than the latency of the sums


def pairs(values):
    return [sum(row[k] * row[k + 1] for k in range(0, len(row), 2)) for row in values]


CHUNK = {
    1: {"edges": (1, 1), "lanes": 1},
    2: {"edges": (3, 5), "lanes": 2},
    3: {"edges": (4, 3), "lanes": 4},
    4: {"edges": (2, 8), "lanes": 4},
    5: {"edges": (12, 20), "lanes": 2},
}


@pytest.mark.parametrize("which", CHUNK)
@pytest.mark.parametrize("idle", [0, 0.5])
def test_sums_are_corrected_after_the_latency(which, idle):
    rng = random.Random(which)
    edges, lanes = CHUNK[which]["edges"], CHUNK[which]["lanes"]
    a, b = (Operand(edge, 2, 64, 16) for edge in edges)
    chunks = -(-b.edge // lanes)
    chunk = StructLayout({
        "row": range(a.edge), "index": range(chunks), "a_page": range(4), "b_page": range(4),
    })
    dut = Corrector(
        geometries=(a, b), chunk=chunk, lanes=lanes, writes=(write_port(a), write_port(b)),
        target="generic",
    )
    terms, script = [], []
    for port, geometry in zip("ab", (a, b), strict=True):
        both = [random_panel(rng, geometry, 3, page=page) for page in range(4)]
        terms.append([pairs(values) for values, _ in both])
        for write in (write["write"] for _, some in both for write in some):
            # Both ports carry the same word.
            other = {"valid": 0, "write": {"data": write["write"]["data"]}}
            script.append({"a": other, "b": other, port: write})
        script.append({"a": {"valid": 0}, "b": {"valid": 0}})
    script += [{}] * SETTLE
    expected = {}
    while len(expected) < 60:
        one = {
            "row": rng.randrange(a.edge), "index": rng.randrange(chunks),
            "a_page": rng.randrange(4), "b_page": rng.randrange(4),
        }
        sums = [rng.randint(-(1 << 31), (1 << 31) - 1) for _ in range(lanes)]
        now = len(script)
        script += [{} for _ in range(1 + (rng.random() < idle))]
        script[now] |= {"request": {"valid": 1, "chunk": one}}
        term = terms[0][one["a_page"]][one["row"]]
        columns = terms[1][one["b_page"]][one["index"] * lanes :][:lanes]
        exact = [value - term - column for value, column in zip(sums, columns, strict=False)]
        expected[now] = sums, [(x + (1 << 31)) % (1 << 32) - (1 << 31) for x in exact]
    script += [{} for _ in range(dut.LATENCY + 1)]
    for now, (sums, _) in expected.items():
        script[now + dut.SUMS]["sums"] = sums
    (found,) = play(dut, script, "corrected")
    for now, (_, results) in expected.items():
        assert found[now + dut.LATENCY][: len(results)] == results


@pytest.mark.parametrize("target", ["generic", "ecp5"])
@pytest.mark.parametrize("depth, bytes_in", [(2, 16), (8, 16), (16, 16), (16, 64), (64, 64)])
def test_terms_are_ready_before_the_first_sums(target, depth, bytes_in):
    # A tile is offered 5 cycles after the last word of its panels. Its first row is requested when
    # it is written, after at least one step.
    config = Config(
        rows=1, cols=1, depth=depth, multiplier="fip", target=target, bytes_in=bytes_in
    )
    both = operands(config)
    pairs = PairSums(
        geometries=both, writes=[write_port(one) for one in both], counts=[1, 1], target=target
    )
    Fragment.get(pairs, None)
    assert 5 + Latencies.of(config).write_latency + 1 >= pairs.latency


@pytest.mark.parametrize("target", ["generic", "ecp5", "ice40hx"])
@pytest.mark.parametrize("drain", ["overlapped", "folded"])
def test_a_row_is_read_before_it_is_overwritten(target, drain):
    # Its room is released with the request, and allocated again one cycle later at the earliest.
    latencies = Latencies.of(
        Config(rows=1, cols=1, depth=2, multiplier="fip", target=target, drain=drain)
    )
    assert latencies.read_delay + latencies.read_latency == Corrector.SUMS
    assert latencies.read_delay < 1 + latencies.write_latency
