"""The leaves of the ECP5: their twins against sums of Python integers, and their primitives."""

import random

import pytest

from weft.hw.arith import ecp5
from weft.hw.arith.ecp5 import Ecp5FastInnerProductMac, Ecp5PlainMac
from weft.sim.amaranth_bench import play
from weft.sim.primitives import duel

PLAIN = [pytest.param(Ecp5PlainMac, depth, id=f"plain-{depth}") for depth in (1, 2, 3, 5)]
FAST = [pytest.param(Ecp5FastInnerProductMac, depth, id=f"fip-{depth}") for depth in (2, 4, 6)]
ALL = pytest.mark.parametrize("leaf, depth", [*PLAIN, *FAST])
DSP = pytest.mark.parametrize("dsp", [True, False], ids=["dsp", "logic"])


def added(leaf, a, b):
    """What a step adds: the inner product, with the terms that are corrected later."""
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    if not leaf.CORRECTED:
        return dot
    return dot + sum(v[d] * v[d + 1] for v in (a, b) for d in range(0, len(a), 2))


def wrapped(value):
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def steps(depth, count):
    rng = random.Random(depth)
    limits = [-128, 127]
    for _ in range(count):
        a, b = ([rng.choice([*limits, rng.randint(*limits)]) for _ in range(depth)] for _ in "ab")
        yield {"a": a, "b": b, "en": int(rng.random() < 0.7)}


@ALL
@DSP
def test_sum_follows_its_step_by_the_latency(leaf, depth, dsp):
    rng = random.Random(2)
    latency = leaf.latency(depth)
    script = [*steps(depth, 300), *({"en": 0} for _ in range(latency))]
    clears = [cycle["en"] and rng.random() < 0.2 for cycle in script]
    for t, cycle in enumerate(script):
        cycle["clear"] = int(t >= latency - 1 and clears[t - latency + 1])
    (sums,) = play(leaf(depth=depth, dsp=dsp), script, "sum")
    total = 0
    for t, cycle in enumerate(script[:-latency]):
        total = 0 if clears[t] else total
        total += added(leaf, cycle["a"], cycle["b"]) if cycle["en"] else 0
        assert sums[t + latency] == total


@ALL
@DSP
def test_folded_sums_move_out_and_zeros_in(leaf, depth, dsp):
    """Two tiles: what has moved in last is what the second one starts from."""
    latency = leaf.latency(depth)
    tile = list(steps(depth, 20))
    alone = sum(added(leaf, cycle["a"], cycle["b"]) for cycle in tile if cycle["en"])
    grow = [*({**cycle, "shift": 0} for cycle in tile), *[{"en": 0, "above": 5}] * (latency - 1)]
    into = [77, -(1 << 31), -12345]
    moves = [{"shift": 1, "above": value} for value in into]
    (sums,) = play(leaf(depth=depth, dsp=dsp, folded=True), [*grow, *moves, *grow], "sum", tail=1)
    assert sums[len(grow) : len(grow) + 4] == [alone, *into]
    assert sums[-1] == into[-1] + alone


@ALL
def test_largest_products_add_up(leaf, depth):
    low = {"a": [-128] * depth, "b": [-128] * depth, "en": 1, "clear": 0}
    rounds = 40
    (sums,) = play(leaf(depth=depth, dsp=True), [low] * rounds, "sum", tail=leaf.latency(depth))
    assert sums[-1] == wrapped(rounds * added(leaf, low["a"], low["b"]))


@pytest.mark.parametrize("leaf, depth, levels", [
    (Ecp5PlainMac, 1, 0), (Ecp5PlainMac, 2, 1), (Ecp5PlainMac, 5, 3), (Ecp5PlainMac, 64, 6),
    (Ecp5FastInnerProductMac, 2, 0), (Ecp5FastInnerProductMac, 6, 2),
])
def test_a_level_of_the_tree_is_a_cycle(leaf, depth, levels):
    assert leaf.latency(depth) == leaf.LATENCY + levels == 5 + levels


@ALL
@DSP
def test_primitives_equal_the_twin(leaf, depth, dsp):
    assert duel(leaf(depth=depth, dsp=dsp), cycles=2000) == "ALL RIGHT"


@pytest.mark.parametrize("name", ["_chained", "_later"])
def test_a_leaf_of_other_function_is_seen(name, monkeypatch):
    """Where the primitives' sums lack their lowest bit, or terms are a cycle early."""
    broken = {"_chained": lambda m, x, y: (x + y) & ~1, "_later": lambda m, value: value}[name]
    whole = getattr(ecp5, name)

    def elaborate(self, platform):
        monkeypatch.setattr(ecp5, name, whole if platform is None else broken)
        return original(self, platform)

    original = ecp5.Ecp5Mac.elaborate
    monkeypatch.setattr(ecp5.Ecp5Mac, "elaborate", elaborate)
    leaf = Ecp5FastInnerProductMac(depth=4, dsp=True)
    assert duel(leaf, cycles=2000).startswith("WRONG")
