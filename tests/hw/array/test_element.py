"""The processing element against a model of its sums and its chain, cycle by cycle."""

import random

import pytest
from amaranth.hdl import Module

from weft.hw.arith.ecp5 import Ecp5PlainMac
from weft.hw.arith.mac import PlainMac
from weft.hw.array.element import ProcessingElement
from weft.sim.amaranth_bench import play, put, simulate, ticks
from weft.sim.interleaved_mac import interleaved_mac

LEAVES = [
    PlainMac, interleaved_mac(1, 2), interleaved_mac(3, 4), interleaved_mac(3, 5),
    interleaved_mac(2, 4),
]


def turn(leaf):
    """Cycles from a step to what its sum starts from."""
    return leaf.LATENCY - leaf.SLOTS


class Model:
    """A PE, a cycle at a time: what it shows below, then what its orders do."""

    def __init__(self, leaf):
        self.leaf = leaf
        self.chain = [0] * leaf.SLOTS
        self.sums = [0] * leaf.SLOTS
        self.shown = {}  # cycle: what the leaf's sum is then
        self.products = {}  # cycle: what its step adds
        self.time = 0

    def cycle(self, order):
        control = order["control"]
        below = self.chain[-1]
        if control["en"]:
            self.products[self.time] = order["a"][0] * order["b"][0]
        step = self.time - turn(self.leaf)
        slot = step % self.leaf.SLOTS
        if control["clear"] and step in self.products:
            self.sums[slot] = 0
        if order.get("preload"):
            self.sums[slot] = order["init"]
        self.sums[slot] += self.products.get(step, 0)
        self.shown[step + self.leaf.LATENCY] = self.sums[slot]
        if control["capture"]:
            self.chain = [self.shown.get(self.time, 0), *self.chain[:-1]]
        elif order["shift"]:
            self.chain = [order["above"], *self.chain[:-1]]
        self.time += 1
        return below


@pytest.mark.parametrize("leaf", LEAVES)
def test_random_orders(leaf):
    rng = random.Random(leaf.SLOTS)
    names = {"en": 0.7, "clear": 0.2, "capture": 0.3}
    script = []
    for _ in range(500):
        order = {
            "a": [rng.randint(-128, 127)],
            "b": [rng.randint(-128, 127)],
            "control": {name: rng.random() < odds for name, odds in names.items()},
            "shift": rng.random() < 0.5,
            "above": rng.randint(-(1 << 20), 1 << 20),
        }
        if leaf.START is not None:
            order |= {"preload": rng.random() < 0.2, "init": rng.randint(-(1 << 20), 1 << 20)}
            # Without a step, a clear may or may not count.
            step = [order, *reversed(script)][turn(leaf)] if turn(leaf) <= len(script) else None
            order["control"]["clear"] &= step is not None and step["control"]["en"]
        script.append(order)
    (below,) = play(ProcessingElement(mac=leaf(depth=1)), script, "below")
    model = Model(leaf)
    assert below == [model.cycle(order) for order in script]


def test_a_captured_sum_outlives_the_next_one():
    script = [
        {"a": [3], "b": [4], "control": {"en": 1}},
        {"a": [5], "b": [6], "control": {"en": 1, "clear": 1}},
        {"control": {"clear": 1, "capture": 1}},
        {"control": {}},
    ]
    (below,) = play(ProcessingElement(mac=PlainMac(depth=1)), script, "below", tail=3)
    assert below == [0, 0, 0, 12, 12, 12, 12]


@pytest.mark.parametrize("leaf", LEAVES[1:])
def test_sums_start_from_what_comes_by(leaf):
    # A step a slot, each with a start of its own; what it is before and after is another's.
    slots = leaf.SLOTS
    script = []
    for t in range(leaf.LATENCY + slots):
        starts = 0 <= t - turn(leaf) < slots
        orders = {"en": t < slots, "capture": t >= leaf.LATENCY}
        script.append({
            "a": [7], "b": [-3], "control": orders, "preload": starts, "init": 1000 * t,
        })
    script += [{"control": {}, "shift": 1}] * slots
    (below,) = play(ProcessingElement(mac=leaf(depth=1)), script, "below")
    assert below[-slots:] == [1000 * (turn(leaf) + slot) - 21 for slot in range(slots)]


@pytest.mark.parametrize("leaf", LEAVES[:3])
def test_only_a_leaf_with_a_start_makes_ports_for_it(leaf):
    element = ProcessingElement(mac=leaf(depth=1))
    assert (leaf.START is not None) == ("preload" in element.signature.members)
    assert (leaf.START is not None) == ("init" in element.signature.members)
    play(element, [{}], "below")


@pytest.mark.parametrize("leaf", [PlainMac, Ecp5PlainMac])
def test_folded_sums_are_the_column(leaf):
    """Three PEs, two tiles: PE p is shifted p + 1 times, and starts the next tile from 0."""
    column = [ProcessingElement(mac=leaf(depth=1, folded=True)) for _ in range(3)]
    m = Module()
    m.submodules += column
    m.d.comb += [low.above.eq(high.below) for high, low in zip(column, column[1:], strict=False)]

    async def bench(ctx):
        for tile in (1, 2):
            for pe, value in enumerate((3, 5, -7)):
                put(ctx, column[pe].a, [value * tile])
                put(ctx, column[pe].b, [11])
                ctx.set(column[pe].control.en, 1)
            await ticks(ctx, tile)
            for pe in column:
                ctx.set(pe.control.en, 0)
                ctx.set(pe.control.clear, 1)  # which mean nothing
                ctx.set(pe.control.capture, 1)
            await ticks(ctx, leaf.LATENCY - 1)
            found = []
            for cycle in range(3):
                for p, pe in enumerate(column):
                    ctx.set(pe.shift, p >= cycle)
                found.append(ctx.get(column[-1].below))
                await ctx.tick()
            for pe in column:
                ctx.set(pe.shift, 0)
            assert found == [value * tile * 11 * tile for value in (-7, 5, 3)]
            assert [ctx.get(pe.below) for pe in column] == [0, 0, 0]

    simulate(m, bench)
