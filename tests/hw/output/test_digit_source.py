"""The digits of a shifted sum, against Python's integers."""

import random

import pytest

from verif.amaranth_bench import play
from weft.hw.output.serial_scaler import DigitSource

EDGES = [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678]


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_digits_follow_the_start(bits):
    rng, count = random.Random(bits), 32 // bits
    script, expected = [{}], {}
    for left in range(32):
        acc = rng.choice([*EDGES, rng.getrandbits(32)])
        value = 2 * (acc << left & 0xFFFFFFFF)
        for n in range(count):
            now = len(script) + DigitSource.LATENCY + n
            expected[now] = value >> bits * n + 1 & (1 << bits) - 1, value >> bits * n & 1
        script += [{"start": 1, "left": left}, {"start": 0, "acc": acc}]
        script += [{"acc": acc, "left": rng.randrange(32)} for _ in range(count - 2)]
        script += [{} for _ in range(rng.randrange(3))]
    found = play(DigitSource(bits=bits), script, "digit", "below", tail=count + 2)
    for now, want in expected.items():
        assert tuple(trace[now] for trace in found) == want
