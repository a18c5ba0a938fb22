"""The array alone: skewed, drained and preloaded by hand, against products of Python integers."""

import random

import pytest

from weft.hw.arith.mac import PlainMac
from weft.hw.array.systolic import SystolicArray
from weft.sim.amaranth_bench import play
from weft.sim.interleaved import interleaved

SHAPES = [  # rows, cols, depth, hop, leaf
    pytest.param(1, 1, 1, 1, PlainMac, id="1x1x1"),
    pytest.param(3, 4, 1, 1, PlainMac, id="3x4x1-hop1"),
    pytest.param(3, 5, 2, 2, PlainMac, id="3x5x2-hop2"),
    pytest.param(4, 3, 1, 3, PlainMac, id="4x3x1-hop3"),
    pytest.param(2, 2, 1, 8, PlainMac, id="2x2x1-hop8"),
    pytest.param(3, 3, 1, 2, interleaved(3, 2), id="3x3x1-slots3"),
    pytest.param(2, 5, 2, 1, interleaved(3, 4), id="2x5x2-slots3"),
]


class Schedule:
    """What the array's ports carry, cycle by cycle; noise where nothing is said."""

    def __init__(self, rows, cols, depth, hop, leaf, seed):
        self.rows, self.cols, self.depth, self.hop, self.leaf = rows, cols, depth, hop, leaf
        self.rng = random.Random(seed)
        self.said = {}
        self.expected = {}  # (cycle, column): sum at the foot
        self.free = 0  # first cycle in which a drain may start

    def say(self, t, port, index, value):
        self.said[t, port, index] = value

    def noise(self):
        return self.rng.choice([-128, 127, self.rng.randint(-128, 127)])

    def value(self):
        return [self.noise() for _ in range(self.depth)]

    def step(self, t, a, b, **orders):
        """Operands ``a[row]`` and ``b[col]`` enter at ``t``; orders go with them."""
        for row, value in enumerate(a):
            self.say(t + (self.rows - 1 - row) // self.hop, "a", row, value)
        for col, value in enumerate(b):
            self.say(t + col // self.hop, "b", col, value)
        for name, on in orders.items():
            self.say(t, "control", name, on)

    def multiply(self, start, words, bubble=0.0, starts=None):
        """SLOTS products of ``words`` steps each, from ``start`` on; the cycle behind them."""
        slots = self.leaf.SLOTS
        sums = starts or [[[0] * self.cols for _ in range(self.rows)] for _ in range(slots)]
        t, done = start, 0
        while done < words:
            last = done == words - 1
            drain = t + slots + self.leaf.LATENCY + (self.rows - 1) // self.hop
            if self.rng.random() < bubble or last and drain < self.free:
                t += slots
                continue
            for slot in range(slots):
                a, b = ([self.value() for _ in range(n)] for n in (self.rows, self.cols))
                self.step(t, a, b, en=1, clear=done == 0 and not starts, preload=done == 0)
                self.say(t + self.leaf.LATENCY, "control", "capture", last)
                for row, x in enumerate(a):
                    for col, y in enumerate(b):
                        sums[slot][row][col] += sum(p * q for p, q in zip(x, y, strict=True))
                t += 1
            done += 1
        self.drain(drain, sums)
        return t

    def drain(self, start, sums):
        slots = self.leaf.SLOTS
        self.free = start + self.rows * slots
        for n in range(self.rows * slots):
            self.say(start + n, "valid", None, 1)
            for p in range(self.rows):
                self.say(start + n, "shift", p, n < (p + 1) * slots - 1)
            for col in range(self.cols):
                late = start + n + col // self.hop
                self.expected[late, col] = sums[n % slots][n // slots][col]

    def script(self, cycles):
        for t in range(cycles):
            said = self.said
            yield {
                "a": [said.get((t, "a", row)) or self.value() for row in range(self.rows)],
                "b": [said.get((t, "b", col)) or self.value() for col in range(self.cols)],
                "control": {
                    "en": said.get((t, "control", "en"), 0),
                    "clear": said.get((t, "control", "clear"), self.rng.random() < 0.5),
                    "preload": said.get((t, "control", "preload"), self.rng.random() < 0.5),
                    "capture": said.get((t, "control", "capture"), 0),
                },
                "shift": sum(said.get((t, "shift", p), 0) << p for p in range(self.rows)),
                "head": [said.get((t, "head", col), self.noise()) for col in range(self.cols)],
                "valid": said.get((t, "valid", None), 0),
            }

    def check(self):
        cycles = max(t for t, _ in self.expected) + 5
        array = SystolicArray(
            rows=self.rows, cols=self.cols, hop=self.hop, mac=lambda: self.leaf(depth=self.depth)
        )
        (feet,) = play(array, list(self.script(cycles)), "foot")
        seen = {
            (t, col): one["sum"]
            for t, foot in enumerate(feet) for col, one in enumerate(foot) if one["valid"]
        }
        assert seen == self.expected


@pytest.mark.parametrize("rows, cols, depth, hop, leaf", SHAPES)
@pytest.mark.parametrize("bubble", [0, 0.5])
def test_products_drain_row_by_row(rows, cols, depth, hop, leaf, bubble):
    schedule = Schedule(rows, cols, depth, hop, leaf, seed=1)
    t = 0
    for words in (rows, 1, rows + 1, 1, 2, 9):
        t = schedule.multiply(t, words, bubble)
    schedule.check()


@pytest.mark.parametrize("rows, cols, depth, hop, leaf", SHAPES)
def test_sums_start_from_what_the_head_fills_in(rows, cols, depth, hop, leaf):
    schedule = Schedule(rows, cols, depth, hop, leaf, seed=2)
    slots = leaf.SLOTS
    rng = random.Random(3)
    starts = [
        [[rng.randint(-(10**9), 10**9) for _ in range(cols)] for _ in range(rows)]
        for _ in range(slots)
    ]
    # The lowest row first, each row's slots in order; column c hop by hop later.
    for n in range(rows * slots):
        for p in range(rows):
            schedule.say(n, "shift", p, 1)
        for col in range(cols):
            schedule.say(n + col // hop, "head", col, starts[n % slots][n // slots][col])
    begin = rows * slots
    for p in range(rows):
        for later in range(1, slots):  # the chain moves on to the next slot's start
            schedule.say(begin + later + p // hop, "shift", p, 1)
    end = schedule.multiply(begin, rows + 4, starts=starts)
    schedule.multiply(end, 2)  # and none of it leaks into the next product
    schedule.check()


def test_operands_reach_hop_elements_a_cycle():
    # One product only: with hop 2, element (p, c) works p // 2 + c // 2 cycles after the first.
    schedule = Schedule(5, 5, 1, 2, PlainMac, seed=4)
    schedule.multiply(0, 1)
    schedule.check()
    assert min(schedule.expected) == (1 + PlainMac.LATENCY + 4 // 2, 0)
