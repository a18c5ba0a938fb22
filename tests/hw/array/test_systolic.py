"""The array alone: the test skews, starts and drains it; Python integers are the reference."""

import random

import pytest
from tiers import quick

from verif.amaranth_bench import play
from verif.interleaved_mac import interleaved_mac
from weft.hw.arith.mac import PlainMac
from weft.hw.array.systolic import SystolicArray

PLAIN = [  # rows, cols, depth, hop, cell
    pytest.param(1, 1, 1, 1, PlainMac, id="1x1x1"),
    pytest.param(3, 4, 1, 1, PlainMac, id="3x4x1-hop1"),
    pytest.param(3, 5, 2, 2, PlainMac, id="3x5x2-hop2"),
    pytest.param(4, 3, 1, 3, PlainMac, id="4x3x1-hop3"),
    pytest.param(2, 2, 1, 8, PlainMac, id="2x2x1-hop8"),
]
STARTED = [
    pytest.param(1, 1, 1, 1, interleaved_mac(1, 2), id="1x1x1-slots1"),
    pytest.param(4, 3, 1, 1, interleaved_mac(1, 3), id="4x3x1-hop1-slots1"),
    pytest.param(3, 5, 2, 2, interleaved_mac(1, 2), id="3x5x2-hop2-slots1"),
    pytest.param(3, 4, 1, 1, interleaved_mac(3, 5), id="3x4x1-hop1-slots3"),
    pytest.param(5, 3, 1, 2, interleaved_mac(3, 4), id="5x3x1-hop2-slots3"),
    pytest.param(4, 5, 1, 3, interleaved_mac(3, 5), id="4x5x1-hop3-slots3"),
    pytest.param(2, 3, 2, 8, interleaved_mac(3, 4), id="2x3x2-hop8-slots3"),
]
QUICK = (
    "3x4x1-hop1", "3x5x2-hop2", "2x2x1-hop8", "1x1x1-slots1", "4x3x1-hop1-slots1",
    "5x3x1-hop2-slots3", "4x5x1-hop3-slots3", "2x3x2-hop8-slots3",
)


def arrays(cases):
    """Parameters of a test; those that are not in `QUICK` are slow."""
    return pytest.mark.parametrize("rows, cols, depth, hop, cell", [
        case if case.id in QUICK else pytest.param(*case.values, id=case.id, marks=pytest.mark.slow)
        for case in cases
    ])


ALL, WITH_START = arrays([*PLAIN, *STARTED]), arrays(STARTED)
BUBBLES = pytest.mark.parametrize("bubble", quick(1, [0.5, 0]))


class Schedule:
    """The inputs of the array in each cycle; random where they have no effect."""

    def __init__(self, rows, cols, depth, hop, cell, seed, chains=1):
        self.chains = chains
        self.rows, self.cols, self.depth, self.hop, self.cell = rows, cols, depth, hop, cell
        self.start_delay = cell.LATENCY - cell.SLOTS
        self.rng = random.Random(seed)
        self.driven = {}
        self.live = set()  # cycles whose slots hold sums that must not change
        self.expected = {}  # (cycle, column): sum at the south edge
        self.free = 0  # first cycle in which a drain may start

    def drive(self, t, port, index, value):
        self.driven[t, port, index] = value

    def noise(self):
        return self.rng.choice([-128, 127, self.rng.randint(-128, 127)])

    def value(self):
        return [self.noise() for _ in range(self.depth)]

    def skew(self, row):
        return (self.rows - 1 - row) // self.hop

    def step(self, t, a, b, *, clear):
        """Operands ``a[row]`` and ``b[col]`` enter at ``t``."""
        for row, value in enumerate(a):
            self.drive(t + self.skew(row), "a", row, value)
        for col, value in enumerate(b):
            self.drive(t + col // self.hop, "b", col, value)
        self.drive(t, "control", "en", 1)
        self.drive(t + self.start_delay, "control", "clear", clear)

    def start(self, t, rows, values):
        """Sums of ``rows`` start from ``values``, one for each column, at the step at ``t``."""
        for row in rows:
            self.drive(t + self.start_delay + self.skew(row), "preload", row, 1)
        for col, value in enumerate(values):
            self.drive(t + self.start_delay + col // self.hop, "init", col, value)

    def multiply(self, t, words, bubble=0.0, starts=None, broadcast=False):
        """SLOTS products of ``words`` steps each, from about ``t`` on; returns the cycle after.

        ``starts[slot][row][col]`` enter before them, one row in each round; a broadcast enters with
        the first step, the same for all rows.
        """
        slots, all_rows = self.cell.SLOTS, range(self.rows)
        sums = [[list(row) for row in starts[slot]] for slot in range(slots)] if starts else [
            [[0] * self.cols for _ in all_rows] for _ in range(slots)
        ]
        loads = [("load", row) for row in all_rows] if starts and not broadcast else []
        rounds = [*loads, *(("step", word) for word in range(words))]
        t += self.rng.randrange(slots)  # any phase
        begin = None
        while rounds:
            kind, n = rounds[0]
            drain = t + slots + self.cell.LATENCY + (self.rows - 1) // self.hop
            if self.rng.random() < bubble or (len(rounds) == 1 and drain < self.free):
                t += slots
                continue
            begin = t if begin is None else begin
            del rounds[0]
            for slot in range(slots):
                if kind == "load":
                    self.start(t, [n], starts[slot][n])
                else:
                    if broadcast and n == 0:
                        self.start(t, all_rows, starts[slot][0])
                    self._multiply(t, sums[slot], clear=n == 0 and not starts, last=not rounds)
                t += 1
        self.live.update(range(begin, t))
        self.drain(drain, sums)
        return t

    def _multiply(self, t, sums, *, clear, last):
        a, b = ([self.value() for _ in range(n)] for n in (self.rows, self.cols))
        self.step(t, a, b, clear=clear)
        self.drive(t + self.cell.LATENCY, "control", "capture", last)
        for row, x in enumerate(a):
            for col, y in enumerate(b):
                sums[row][col] += sum(p * q for p, q in zip(x, y, strict=True))

    def drain(self, start, sums):
        slots = self.cell.SLOTS
        cycles = self.rows // self.chains * slots
        self.free = start + cycles
        for n in range(cycles):
            self.drive(start + n, "valid", None, 1)
            for p in range(self.rows):
                self.drive(start + n, "shift", p, n < (p // self.chains + 1) * slots - 1)
            for col in range(self.chains * self.cols):
                chain, c = divmod(col, self.cols)
                row = n // slots * self.chains + chain
                self.expected[start + n + c // self.hop, col] = sums[n % slots][row][c]

    def control_bit(self, t, port, index, delay):
        """0; random if cycle ``t - delay`` has no step or sum that it could change."""
        free = t - delay not in self.live
        return self.driven.get((t, port, index), int(free and self.rng.random() < 0.5))

    def script(self, cycles):
        driven = self.driven
        for t in range(cycles):
            cycle = {
                "a": [driven.get((t, "a", row)) or self.value() for row in range(self.rows)],
                "b": [driven.get((t, "b", col)) or self.value() for col in range(self.cols)],
                "control": {
                    "en": self.control_bit(t, "control", "en", 0),
                    "clear": self.control_bit(t, "control", "clear", self.start_delay),
                    "capture": driven.get((t, "control", "capture"), 0),
                },
                "shift": sum(driven.get((t, "shift", p), 0) << p for p in range(self.rows)),
                "valid": driven.get((t, "valid", None), 0),
            }
            if self.cell.START is not None:
                cycle["preload"] = sum(
                    self.control_bit(t, "preload", row, self.start_delay + self.skew(row)) << row
                    for row in range(self.rows)
                )
                cycle["init"] = [
                    driven.get((t, "init", col), self.noise()) for col in range(self.cols)
                ]
            yield cycle

    def check(self):
        cycles = max(t for t, _ in self.expected) + 5
        array = SystolicArray(
            rows=self.rows, cols=self.cols, hop=self.hop,
            mac=lambda col: self.cell(depth=self.depth), chains=self.chains,
        )
        (south,) = play(array, list(self.script(cycles)), "south")
        outputs = {
            (t, col): one["sum"]
            for t, row in enumerate(south) for col, one in enumerate(row) if one["valid"]
        }
        assert outputs == self.expected

    def starts(self, *, broadcast):
        """Start values for the sums of a pass."""
        rows = 1 if broadcast else self.rows
        values = [
            [[self.rng.randint(-(10**9), 10**9) for _ in range(self.cols)] for _ in range(rows)]
            for _ in range(self.cell.SLOTS)
        ]
        return [slot * self.rows for slot in values] if broadcast else values


@pytest.mark.parametrize("rows, cols, hop, chains", [
    (4, 3, 2, 2), (8, 5, 4, 2), (8, 3, 2, 2), (2, 2, 8, 2), (6, 4, 2, 2), (6, 2, 3, 3),
])
@BUBBLES
def test_neighbouring_rows_leave_together(rows, cols, hop, chains, bubble):
    """Tiles follow each other in ``rows / chains`` cycles."""
    schedule = Schedule(rows, cols, 1, hop, PlainMac, seed=3, chains=chains)
    t = 0
    for words in (rows, 1, 1, rows + 1, 1, 2, 1, 1, 9):
        t = schedule.multiply(t, words, bubble)
    schedule.check()


@ALL
@BUBBLES
def test_products_drain_row_by_row(rows, cols, depth, hop, cell, bubble):
    schedule = Schedule(rows, cols, depth, hop, cell, seed=1)
    t = 0
    for words in (rows, 1, rows + 1, 1, 2, 9):
        t = schedule.multiply(t, words, bubble)
    schedule.check()


@WITH_START
@BUBBLES
@pytest.mark.parametrize("broadcast", [False, True], ids=["rows", "broadcast"])
def test_sums_start_from_the_values_of_their_row_and_column(
    rows, cols, depth, hop, cell, bubble, broadcast
):
    schedule = Schedule(rows, cols, depth, hop, cell, seed=2)
    t = 0
    for words in (rows + 4, 1, 2):
        starts = schedule.starts(broadcast=broadcast)
        t = schedule.multiply(t, words, bubble, starts, broadcast)
    schedule.multiply(t, 2)  # no start value leaks into the next product
    schedule.check()


@WITH_START
def test_products_of_all_kinds_follow_each_other(rows, cols, depth, hop, cell):
    schedule = Schedule(rows, cols, depth, hop, cell, seed=3)
    t = 0
    for n, kind in enumerate("rbcbcrrcb"):
        broadcast = kind == "b"
        starts = None if kind == "c" else schedule.starts(broadcast=broadcast)
        t = schedule.multiply(t, 1 + n % 3, n % 2 * 0.3, starts, broadcast)
    schedule.check()


def test_operands_move_hop_elements_a_cycle():
    # One product: with hop 2, element (p, c) works p // 2 + c // 2 cycles after the first.
    schedule = Schedule(5, 5, 1, 2, PlainMac, seed=4)
    schedule.multiply(0, 1)
    schedule.check()
    assert min(schedule.expected) == (1 + PlainMac.LATENCY + 4 // 2, 0)


def test_cells_are_made_for_their_column():
    made = []

    def mac(col):
        made.append(col)
        return PlainMac(depth=1)

    play(SystolicArray(rows=2, cols=3, hop=1, mac=mac), [{}], "south")
    assert made == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("cell", [PlainMac, interleaved_mac(3, 4)])
def test_only_cells_with_a_start_have_ports_for_it(cell):
    array = SystolicArray(rows=2, cols=3, hop=1, mac=lambda col: cell(depth=1))
    found = {"preload", "init"} & set(array.signature.members)
    assert found == (set() if cell.START is None else {"preload", "init"})
    play(array, [{}], "south")
