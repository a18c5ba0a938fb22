"""The processing element against a model of its chain, cycle by cycle."""

import random

import pytest

from weft.hw.arith.mac import PlainMac
from weft.hw.array.element import ProcessingElement
from weft.sim.amaranth_bench import play
from weft.sim.interleaved import interleaved


class Model:
    """A PE, a cycle at a time: what it shows below, then what its orders do."""

    def __init__(self, leaf):
        self.leaf = leaf
        self.chain = [0] * leaf.SLOTS
        self.sums = [0] * leaf.SLOTS
        self.shown = {}  # cycle: what the leaf's sum is then
        self.step = None
        self.time = 0

    def cycle(self, order):
        below = self.chain[-1]
        if self.step:
            t, slot = self.time - 1, (self.time - 1) % self.leaf.SLOTS
            control = self.step["control"]
            if control["en"]:
                start = below if control["preload"] else self.sums[slot]
                start = 0 if control["clear"] else start
                self.sums[slot] = start + self.step["a"][0] * self.step["b"][0]
            self.shown[t + self.leaf.LATENCY] = self.sums[slot]
        if order["control"]["capture"]:
            self.chain = [self.shown.get(self.time, 0), *self.chain[:-1]]
        elif order["shift"]:
            self.chain = [order["above"], *self.chain[:-1]]
        self.step = order
        self.time += 1
        return below


@pytest.mark.parametrize("leaf", [
    PlainMac, interleaved(3, 2), interleaved(3, 4), interleaved(2, 3),
])
def test_random_orders(leaf):
    rng = random.Random(leaf.SLOTS)
    names = {"en": 0.7, "clear": 0.1, "preload": 0.2, "capture": 0.3}
    script = [
        {
            "a": [rng.randint(-128, 127)],
            "b": [rng.randint(-128, 127)],
            "control": {name: rng.random() < odds for name, odds in names.items()},
            "shift": rng.random() < 0.5,
            "above": rng.randint(-(1 << 20), 1 << 20),
        }
        for _ in range(500)
    ]
    (below,) = play(ProcessingElement(mac=leaf(depth=1)), script, "below")
    model = Model(leaf)
    assert below == [model.cycle(order) for order in script]


def test_a_captured_sum_outlives_the_next_one():
    step = {"en": 1, "clear": 1}
    script = [
        {"a": [3], "b": [4], "control": step},
        {"a": [5], "b": [6], "control": step},
        {"control": {"capture": 1}},
        {"control": {}},
    ]
    (below,) = play(ProcessingElement(mac=PlainMac(depth=1)), script, "below", tail=3)
    assert below == [0, 0, 0, 12, 12, 12, 12]


@pytest.mark.parametrize("leaf", [PlainMac, interleaved(3, 2), interleaved(3, 5)])
def test_preloaded_sums_start_from_the_chain(leaf):
    # Filled from above; then a step a slot, the chain moving on by one for the next one's start.
    slots = leaf.SLOTS
    starts = [1000 * (n + 1) for n in range(slots)]
    script = [{"shift": 1, "above": value} for value in starts]
    for t in range(leaf.LATENCY + slots):
        orders = {"en": t < slots, "preload": t < slots, "capture": t >= leaf.LATENCY}
        script.append({"a": [7], "b": [-3], "control": orders, "shift": 0 < t < slots})
    script += [{"control": {}, "shift": 1}] * slots
    (below,) = play(ProcessingElement(mac=leaf(depth=1)), script, "below")
    assert below[-slots:] == [value - 21 for value in starts]
