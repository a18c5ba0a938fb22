"""The product digit by digit, back to back, against Python's integers."""

import random

import pytest

from verif.amaranth_bench import play
from weft.hw.output.serial_scaler import SerialProduct

SUMS = [0, 1, -1, -(1 << 31), (1 << 31) - 1, 0x55555555, -0x55555556, 0x2AAAAAAA, 3 << 29]
MULTIPLIERS = [0, 1, 1 << 30, (1 << 31) - 1, 0x55555555]


@pytest.mark.parametrize("bits", [2, 4, 8, 16])
@pytest.mark.parametrize("wait", [0, 3])
@pytest.mark.parametrize("short_chains", [False, True])
def test_products_are_exact(bits, wait, short_chains):
    rng, count = random.Random(bits), 32 // bits
    dut = SerialProduct(bits=bits, short_chains=short_chains)
    pairs = [(total, factor) for total in SUMS for factor in MULTIPLIERS]
    pairs += [(rng.getrandbits(32) - (1 << 31), rng.getrandbits(31)) for _ in range(40)]
    script = [{"first": 0} for _ in range(len(pairs) * (count + wait) + 20)]
    expected, start = {}, 0
    for total, factor in pairs:
        value = 2 * (total & 0xFFFFFFFF)
        for n in range(count):
            script[start + n] |= {
                "digit": value >> bits * n + 1 & (1 << bits) - 1, "below": value >> bits * n & 1,
            }
            script[start + n + 1]["multiplier"] = factor
        script[start + dut.latency() - 1]["first"] = 1
        expected[start + count - 1 + dut.latency()] = (total * factor + (1 << 30)) >> 31
        start += count + rng.randint(0, wait)
    (found,) = play(dut, script, "product")
    assert {now: found[now] for now in expected} == expected
