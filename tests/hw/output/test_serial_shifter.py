"""The serial right shift: every amount, with the bits that its rounding needs."""

import random

import pytest

from verif.amaranth_bench import play
from weft.hw.output.serial_scaler import SerialShifter

EDGES = [0, 1, -1, -(1 << 31), (1 << 31) - 1, 1 << 30, 0x2AAAAAAA, -0x55555556]


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_shifted_values_and_lost_bits(bits):
    rng, steps = random.Random(bits), 32 // bits
    values = [*EDGES, *((rng.getrandbits(32) - (1 << 31)) >> rng.randrange(32) for _ in range(8))]
    script, cases = [], []
    for value in values:
        for right in range(32):
            cases.append((len(script) + steps, value, right))
            script.append({"start": 1, "value": value, "right": right})
            script += [{"start": 0, "right": 31 - right}] * (steps - 1 + rng.randrange(2))
    names = "y", "fits", "negative", "half", "sticky"
    found = play(SerialShifter(bits=bits), script, *names, tail=steps + 1)
    for now, value, right in cases:
        got = dict(zip(names, (trace[now] for trace in found), strict=True))
        y, lost = value >> right, value & (1 << right) - 1
        if got["fits"]:
            assert got["y"] == y
        assert got["fits"] or not -1024 <= y < 1024
        assert got["negative"] == (value < 0)
        assert got["half"] == lost >> max(0, right - 1) & (right > 0)
        assert got["sticky"] == bool(lost & (1 << max(0, right - 1)) - 1)
