"""The product in one cycle and by digits, against Python's integers."""

import random

import pytest
from amaranth.hdl import signed, unsigned
from tiers import quick

from verif.amaranth_bench import play
from weft.hw.output.scalers import ScaleProduct

EDGES = [0, 1, 2, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFF0000, 0xFFFFFFFF]


@pytest.mark.parametrize("cycles", quick(4, [1, 4, 32, 2, 8, 16]))
@pytest.mark.parametrize("a, constant", [(signed(32), 0), (signed(32), 1 << 30), (unsigned(32), 0)])
@pytest.mark.parametrize("wait", [0, 3])
def test_products_are_exact_and_carry_extra(a, constant, cycles, wait):
    rng = random.Random(cycles)
    dut = ScaleProduct(a=a, constant=constant, extra=8, cycles=cycles, target="generic")
    pairs = [(x, y) for x in EDGES for y in EDGES]
    pairs += [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(40)]
    script, expected = [], {}
    for n, (x, y) in enumerate(pairs):
        x -= (x >> 31 << 32) * a.signed
        expected[len(script) + dut.latency(cycles)] = x * y + constant, n % 256
        script.append({"start": 1, "a": x, "b": y, "extra": n % 256})
        noise = {"start": 0, "a": 5, "b": rng.getrandbits(32), "extra": rng.getrandbits(8)}
        script += [noise] * (cycles - 1 + rng.randint(0, wait))
    found = play(dut, script, "product", "o_extra", tail=dut.latency(cycles) + 1)
    for now, want in expected.items():
        assert tuple(trace[now] for trace in found) == want
