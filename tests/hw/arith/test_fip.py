"""The fast inner product against sums of Python integers, with its corrections."""

import random

import pytest

from verif.amaranth_bench import play
from weft.hw.arith.mac import FastInnerProductMac

LATENCY = FastInnerProductMac.LATENCY


def pairs(x):
    return sum(x[k] * x[k + 1] for k in range(0, len(x), 2))


@pytest.mark.parametrize("depth", [2, 4, 6])
@pytest.mark.parametrize("values", [(-128, -128), (127, 127), (-128, 127)], ids=str)
def test_sum_minus_corrections_is_the_inner_product(depth, values):
    rng = random.Random(depth)
    rounds = 40
    a, b = (
        [rng.choice([*values, rng.randint(*values)]) for _ in range(rounds * depth)] for _ in "ab"
    )
    script = [
        {"a": a[n : n + depth], "b": b[n : n + depth], "en": 1, "clear": n == depth}
        for n in range(0, rounds * depth, depth)
    ]
    (sums,) = play(FastInnerProductMac(depth=depth), script, "sum", tail=LATENCY)
    for n in range(rounds):
        k = (n + 1) * depth
        dot = sum(x * y for x, y in zip(a[:k], b[:k], strict=True))
        assert sums[n + LATENCY] - pairs(a[:k]) - pairs(b[:k]) == dot


def test_controls_follow_the_protocol():
    step = {"a": [3, 5], "b": [7, 11], "en": 1}
    product = (3 + 11) * (5 + 7)
    script = [step, {"clear": 1}, {"clear": 0}, {"en": 0}, {"clear": 1}]
    (sums,) = play(FastInnerProductMac(depth=2), script, "sum", tail=2)
    assert sums == [0, 0, product, 2 * product, 3 * product, 3 * product, 3 * product]


def test_an_odd_pair_is_padded_with_zeros():
    script = [{"a": [-128, 0], "b": [-128, 0], "en": 1}, {"en": 0, "clear": 1}]
    assert play(FastInnerProductMac(depth=2), script, "sum", tail=1) == [[0, 0, 128 * 128]]


def test_needs_corrections():
    assert FastInnerProductMac.CORRECTED
