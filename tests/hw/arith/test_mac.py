"""MAC leaves, plain and of several sums, against sums of Python integers."""

import random

import pytest

from weft.hw.arith.mac import Mac, PlainMac
from weft.sim.amaranth_bench import play
from weft.sim.interleaved import interleaved

LEAVES = [
    pytest.param(PlainMac, 1, id="plain-1"),
    pytest.param(PlainMac, 3, id="plain-3"),
    pytest.param(PlainMac, 8, id="plain-8"),
    pytest.param(interleaved(3, 2), 1, id="interleaved-3-2"),
    pytest.param(interleaved(3, 5), 2, id="interleaved-3-5"),
    pytest.param(interleaved(4, 3), 1, id="interleaved-4-3"),
]


def wrapped(value):
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def steps(seed, depth, count):
    """Random steps, extremes among them; what is not ordered is noise."""
    rng = random.Random(seed)
    limits = [-128, 127]
    return [
        {
            "a": [rng.choice([*limits, rng.randint(*limits)]) for _ in range(depth)],
            "b": [rng.choice([*limits, rng.randint(*limits)]) for _ in range(depth)],
            "en": rng.random() < 0.7,
            "clear": rng.random() < 0.2,
            "preload": rng.random() < 0.3,
            "init": rng.choice([-(1 << 31), (1 << 31) - 1, rng.randint(-1000, 1000)]),
        }
        for _ in range(count)
    ]


def expected(leaf, script):
    """``sum`` in every cycle from LATENCY on, as the protocol says."""
    sums = [0] * leaf.SLOTS
    trace = []
    for t, step in enumerate(script[:-1]):
        slot = t % leaf.SLOTS
        if step["en"]:
            start = script[t + 1]["init"] if step["preload"] else sums[slot]
            start = 0 if step["clear"] else start
            dot = sum(x * y for x, y in zip(step["a"], step["b"], strict=True))
            sums[slot] = wrapped(start + dot)
        trace.append(sums[slot])
    return trace


@pytest.mark.parametrize("leaf, depth", LEAVES)
def test_sum_follows_its_step_by_the_latency(leaf, depth):
    script = steps(1, depth, 300)
    (sums,) = play(leaf(depth=depth), script, "sum", tail=leaf.LATENCY)
    assert sums[leaf.LATENCY : leaf.LATENCY + 299] == expected(leaf, script)


@pytest.mark.parametrize("leaf, depth", LEAVES)
def test_largest_products_add_up(leaf, depth):
    low = {"a": [-128] * depth, "b": [-128] * depth, "en": 1, "clear": 1}
    rounds = 1024 // depth
    script = [{**low, "clear": n < leaf.SLOTS} for n in range(rounds * leaf.SLOTS)]
    (sums,) = play(leaf(depth=depth), script, "sum", tail=leaf.LATENCY + 1)
    assert sums[-2] == rounds * depth * 128 * 128


def test_init_is_read_in_the_cycle_after_its_step():
    script = [
        {"a": [2], "b": [3], "en": 1, "preload": 1, "init": 100},
        {"en": 0, "init": 200},
        {"init": 300},
    ]
    assert play(PlainMac(depth=1), script, "sum", tail=1) == [[0, 0, 206, 206]]


def test_clear_goes_before_preload():
    script = [{"a": [2], "b": [3], "en": 1, "clear": 1, "preload": 1, "init": 100}]
    assert play(PlainMac(depth=1), script, "sum", tail=2) == [[0, 0, 6]]


def test_sum_wraps_to_32_bits():
    script = [
        {"a": [1], "b": [1], "en": 1, "preload": 1, "init": (1 << 31) - 1},
        {"a": [-1], "b": [1], "preload": 0},
    ]
    assert play(PlainMac(depth=1), script, "sum", tail=2) == [[0, 0, -(1 << 31), (1 << 31) - 1]]


def test_a_leaf_must_say_what_a_step_adds():
    with pytest.raises(NotImplementedError):
        Mac.product(None)
