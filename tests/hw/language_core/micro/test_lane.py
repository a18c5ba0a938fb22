"""The lane, its reductions and its scale, against the golden operations."""

import numpy as np
import pytest

from verif.amaranth_bench import play
from weft.golden.language import operations
from weft.hw.language_core.micro.lane import Lane, MicroReductions, Normaliser
from weft.language_core.microcode import (
    LANE_OUT,
    LANE_TABLE,
    LANE_VALUE,
    NORMALISED,
    MicroReduction,
    Operation,
    Table,
)

VALUES = 60
LATENCY = LANE_OUT - LANE_VALUE
SETUP = {
    "kind": 0, "out": 0, "step": 1, "moved": 0, "out_place": 0, "operation": 0, "table": 0,
    "scaled": 0, "shift": 0, "narrow": 0, "relu": 0, "residual": 0, "reduction": 0, "masked": 0,
    "least": 0,
}


@pytest.fixture(scope="module")
def dut():
    return Lane(target="generic")


def _sized(rng, bits):
    """Numbers of all sizes, and the largest ones."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    values = rng.integers(low, high + 1, VALUES) >> rng.integers(0, bits, VALUES)
    return np.where(rng.random(VALUES) < 0.15, rng.choice([low, high], VALUES), values)


def _results(dut, setup, before=(), **stages):
    """The results of some values, signed; ``name=(stage, values)`` comes at a stage of each."""
    cycles = [{"setup": SETUP | setup} for _ in range(VALUES + LATENCY + len(before))]
    for n, each in enumerate(before):
        cycles[n] |= each
    for name, (stage, values) in stages.items():
        for n, value in enumerate(values):
            cycles[len(before) + n + stage][name] = int(value)
    [results] = play(dut, cycles, "result", tail=1)
    found = np.array(results[len(before) + LATENCY :][:VALUES])
    return np.where(found >= 32768, found - 65536, found)


@pytest.mark.parametrize("shift, flags", [
    (0, {}), (1, {"residual": 1}), (16, {"residual": 1, "relu": 1}), (30, {"narrow": 1}),
    (33, {"relu": 1}), (47, {}),
])
def test_sums_times_multipliers(dut, shift, flags):
    """The scaled sum saturates before the residual is added, as in the golden model."""
    rng = np.random.default_rng(shift)
    sums, residual = _sized(rng, 32), _sized(rng, 16)
    multipliers = rng.choice([0, 1, 32767, 65535, *rng.integers(0, 65536, 20)], VALUES)
    found = _results(
        dut, {"shift": shift, **flags}, value=(0, sums), multiplier=(0, multipliers),
        residual=(LANE_TABLE - LANE_VALUE, residual),
    )
    if shift == 0:
        scaled = operations.saturate(sums * multipliers)
    else:
        scaled = operations.scale(sums, multipliers, shift, bits=8 if flags.get("narrow") else 16)
    expected = operations.saturate(scaled + residual * flags.get("residual", 0))
    expected = np.maximum(expected, 0) if flags.get("relu") else expected
    np.testing.assert_array_equal(found, expected)


def test_the_exponent_is_added_to_the_shift(dut):
    rng = np.random.default_rng(1)
    sums, m, k = _sized(rng, 32), 54321, 21
    found = _results(
        dut, {"shift": -3, "scaled": 1}, value=(0, sums), multiplier=(0, [m] * VALUES),
        exponent=(0, [k] * VALUES),
    )
    np.testing.assert_array_equal(found, operations.scale(sums, m, k - 3))


def test_distances(dut):
    rng = np.random.default_rng(2)
    logits = _sized(rng, 16)
    pivot = int(logits.max())
    found = _results(
        dut, {"operation": Operation.DISTANCE, "shift": 12}, value=(0, logits),
        multiplier=(0, [30000] * VALUES), pivot=(0, [pivot] * VALUES),
    )
    np.testing.assert_array_equal(found, operations.scale(logits - pivot, 30000, 12))


def _entries(number, table):
    entries = zip(table.base.tolist(), table.slope.tolist(), strict=True)
    return [
        {"table_write": 1, "table_entry": 512 * number + n, "table_base": base & 0xFFFF,
         "table_slope": slope & 0xFFFF} for n, (base, slope) in enumerate(entries)
    ] + [{"table_write": 0}]


def test_exponentials(dut):
    rng = np.random.default_rng(3)
    scores = _sized(rng, 16)
    pivot = int(scores.max())
    beyond = rng.random(VALUES) < 0.2
    found = _results(
        dut, {"operation": Operation.TABLE, "table": Table.EXP},
        _entries(Table.EXP, operations.exp_table()), value=(0, scores),
        pivot=(0, [pivot] * VALUES), beyond=(LANE_TABLE - LANE_VALUE, beyond),
    )
    expected = np.where(beyond, 0, operations.exponential(pivot - scores, 4))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("number, table", [
    (Table.RECIPROCAL, operations.reciprocal_table()), (Table.RSQRT, operations.rsqrt_table(16)[0]),
], ids=["reciprocal", "root"])
def test_tables_of_the_argument(dut, number, table):
    rng = np.random.default_rng(4)
    arguments = rng.integers(0, 65536, VALUES)
    found = _results(
        dut, {"operation": Operation.TABLE, "table": number}, _entries(number, table),
        argument=(0, arguments),
    )
    np.testing.assert_array_equal(found & 0xFFFF, operations.look_up(table, arguments))


@pytest.mark.parametrize("root", [0, 1])
def test_the_argument_and_the_exponent_of_a_number(root):
    rng = np.random.default_rng(root)
    numbers = [1, 2, 3, (1 << 40) - 1, 1 << 39, *(int(v) >> int(s) for v, s in zip(
        rng.integers(1 << 39, 1 << 40, 40), rng.integers(0, 40, 40), strict=True,
    ))]
    script, places = [], []
    for number in numbers:
        script += [{"start": 1, "number": number, "root": root}, {"start": 0}]
        script += [{} for _ in range(NORMALISED + LANE_VALUE - 2)]
        places.append(len(script))
    found = play(Normaliser(), script, "argument", "exponent", tail=1)
    for number, place in zip(numbers, places, strict=True):
        k = number.bit_length() - 1
        bits = operations._after_leading_one(number, k, 15 if root else 16)
        expected = ((k & 1) << 15 | bits, k >> 1) if root else (bits, k)
        assert tuple(int(trace[place]) for trace in found) == tuple(map(int, expected))


@pytest.fixture(scope="module")
def reductions():
    return MicroReductions()


def _reduced(dut, kind, values, *, mark=0, least=0, beyond=None, gap=0):
    """What is reduced of some values, and of the ones after another start."""
    start = {"start": 1, "starting": kind, "mark": mark, "kind": kind, "least": least, "valid": 0}
    script = [start]
    for n, value in enumerate(values):
        script.append({
            "start": 0, "valid": 1, "result": int(value), "first": n == 0, "index": n,
            "beyond": int(bool(beyond is not None and beyond[n])),
        })
        script += [{"valid": 0}] * (gap * (n % 3 == 1))
    script += [{"valid": 0}] * 8
    traces = play(dut, [*script, *script], "maximum", "best", "total", "squares", tail=1)
    ends = [[trace[n] for trace in traces] for n in (len(script), -1)]
    assert ends[0] == ends[1]
    return dict(zip(("maximum", "best", "total", "squares"), ends[1], strict=True))


def test_the_maximum_is_the_first_of_the_largest(reductions):
    rng = np.random.default_rng(5)
    values = rng.integers(-100, -50, 90)
    beyond = np.arange(90) > 60
    found = _reduced(reductions, MicroReduction.MAXIMUM, values, beyond=beyond, gap=2)
    assert found["maximum"] == values[:61].max()
    assert found["best"] == values[:61].argmax()


def test_totals_and_squares(reductions):
    rng = np.random.default_rng(6)
    p = rng.integers(0, 32768, 70)
    assert _reduced(reductions, MicroReduction.TOTAL, p, least=9000)["total"] == p[p >= 9000].sum()
    x = np.array([-32768] * 60 + [32767, 3, -1])
    assert _reduced(reductions, MicroReduction.SQUARES, x, gap=1)["squares"] == (x * x).sum()


@pytest.mark.parametrize("least", [0, 6000])
def test_the_pick_is_the_first_whose_sum_exceeds_the_mark(reductions, least):
    p = np.random.default_rng(7).integers(0, 32768, 20)
    kept = np.where(p < least, 0, p)
    for mark in (0, int(kept[0]), int(kept[0]) - 1, int(kept.sum()) // 2, int(kept.sum()) - 1):
        found = _reduced(reductions, MicroReduction.PICK, p, mark=max(mark, 0), least=least)
        assert found["best"] == (kept.cumsum() > max(mark, 0)).argmax()
