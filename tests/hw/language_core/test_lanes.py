"""The lanes: tables, products, shifts and residuals, against the golden operations."""

import numpy as np
import pytest

from verif.amaranth_bench import play
from weft.golden.language import operations
from weft.hw.language_core.lanes import Lanes
from weft.language_core.descriptors import Factor, Operand

GROUPS = 40


@pytest.fixture(scope="module")
def dut():
    return Lanes(target="generic")


def _int16(rng):
    """Groups of int16 of all sizes, and of the largest ones."""
    values = rng.integers(-32768, 32768, (GROUPS, 4)) >> rng.integers(0, 16, (GROUPS, 4))
    return np.where(rng.random((GROUPS, 4)) < 0.1, rng.choice([-32768, 32767], (GROUPS, 4)), values)


def _run(dut, script, **stages):
    """Results of the groups; ``name=(stage, values)`` comes at a stage of each group."""
    cycles = [dict(script) for _ in range(GROUPS + dut.LATENCY)]
    for name, (stage, values) in stages.items():
        for n, value in enumerate(values):
            cycles[n + stage][name] = np.asarray(value).tolist()
    [results] = play(dut, cycles, "results", tail=1)
    return np.array(results[dut.LATENCY : dut.LATENCY + GROUPS])


def _control(operand, factor=Factor.ONE, *, shift=0, residual=0, narrow=0):
    return {"control": {
        "operand": operand, "factor": factor, "residual": residual, "shift": shift,
        "narrow": narrow,
    }}


@pytest.mark.parametrize("shift, narrow, residual", [
    (1, 0, 0), (16, 0, 1), (31, 1, 0), (47, 0, 0), (20, 0, 1),
])
def test_sums_times_parameters(dut, shift, narrow, residual):
    rng = np.random.default_rng(shift)
    sums = rng.integers(-(1 << 31), 1 << 31, (GROUPS, 4)) >> rng.integers(0, 32, (GROUPS, 4))
    multipliers, side = _int16(rng), _int16(rng)
    found = _run(
        dut, _control(Operand.VALUE, Factor.PARAMETER, shift=shift, narrow=narrow,
                      residual=residual),
        values=(0, sums), parameters=(dut.TABLE, multipliers & 0xFFFF), side=(dut.RESIDUAL, side),
    )
    scaled = operations.scale(sums, multipliers, shift) + side * residual
    np.testing.assert_array_equal(found, operations.saturate(scaled, 8 if narrow else 16))


def test_scales_add_their_exponent(dut):
    rng = np.random.default_rng(1)
    sums = rng.integers(-(1 << 31), 1 << 31, (GROUPS, 4))
    m, e = rng.integers(0, 1 << 16, GROUPS), rng.integers(10, 40, GROUPS)
    found = _run(
        dut, _control(Operand.VALUE, Factor.SCALE, shift=-8),
        values=(0, sums), scale=(dut.TABLE, m), exponent=(dut.TABLE, e),
    )
    expected = operations.scale(sums, m[:, None], e[:, None] - 8)
    np.testing.assert_array_equal(found, expected)


def test_without_a_shift_nothing_is_added(dut):
    values = _int16(np.random.default_rng(2))
    np.testing.assert_array_equal(_run(dut, _control(Operand.VALUE), values=(0, values)), values)


def _write_tables(dut, exp, silu):
    entries = [(exp, n) for n in range(512)] + [(silu, n) for n in range(512)]
    return [
        {"table_write": 1, "table_entry": number, "table_base": int(table.base[n]) & 0xFFFF,
         "table_slope": int(table.slope[n]) & 0xFFFF}
        for number, (table, n) in enumerate(entries)
    ] + [{"table_write": 0}]


def test_tables():
    """Exponentials with masked lanes, then gates; both tables stay from the first write on."""
    dut, rng = Lanes(target="generic"), np.random.default_rng(3)
    silu = operations.silu_table(11)
    scores, side = _int16(rng), _int16(rng)
    top = np.maximum(scores.max(1), rng.integers(-100, 4000, GROUPS))
    scores[:8] = top[:8, None] - rng.integers(0, 4100, (8, 4))  # up to 16 below, and beyond
    masked = rng.integers(0, 16, GROUPS)
    script = _write_tables(dut, operations.exp_table(), silu)
    first = len(script)
    cycles = [_control(Operand.EXP) for _ in range(GROUPS + dut.LATENCY)]
    cycles += [
        _control(Operand.SILU, Factor.SIDE, shift=11) for _ in range(GROUPS + dut.LATENCY)
    ]
    second = GROUPS + dut.LATENCY
    for n in range(GROUPS):
        cycles[n]["values"] = scores[n].tolist()
        cycles[n + 1] |= {"masked": int(masked[n]), "maximum": int(top[n])}
        cycles[second + n]["values"] = scores[n].tolist()
        cycles[second + n + dut.TABLE]["side"] = side[n].tolist()
    [results] = play(dut, script + cycles, "results", tail=1)
    kept = (masked[:, None] >> np.arange(4) & 1) == 0
    expected = np.where(kept, operations.exponential(np.maximum(top[:, None] - scores, 0), 4), 0)
    start = first + dut.LATENCY
    np.testing.assert_array_equal(results[start : start + GROUPS], expected)
    gates = operations.scale(operations.look_up(silu, scores + 32768) * side, 1, 11)
    start += second
    np.testing.assert_array_equal(results[start : start + GROUPS], gates)


def test_pairs_rotate(dut):
    rng = np.random.default_rng(4)
    values, angles = _int16(rng), _int16(rng)
    found = _run(
        dut, _control(Operand.PAIR, shift=15),
        values=(0, values), parameters=(dut.TABLE, angles & 0xFFFF),
    )
    expected = operations.rotate(values, angles[:, ::2], angles[:, 1::2])
    np.testing.assert_array_equal(found, expected)


def test_bytes_of_an_embedding(dut):
    rng = np.random.default_rng(5)
    words, upper = rng.integers(0, 1 << 16, (GROUPS, 4)), rng.integers(0, 2, GROUPS)
    found = _run(
        dut, _control(Operand.BYTE, Factor.SCALE, shift=9),
        parameters=(dut.TABLE, words), upper_bytes=(dut.TABLE, upper),
        scale=(dut.TABLE, np.full(GROUPS, 12345)), exponent=(dut.TABLE, np.zeros(GROUPS, int)),
    )
    halves = words.astype("<u2").view(np.int8).reshape(GROUPS, 2, 4)
    expected = operations.scale(halves[np.arange(GROUPS), upper], 12345, 9)
    np.testing.assert_array_equal(found, expected)


def test_distances_times_a_temperature(dut):
    """From the largest logit, to at most the largest distance of int16."""
    rng, multiplier, shift = np.random.default_rng(6), 20001, 13
    logits = _int16(rng)
    top = np.maximum(logits.max(1), rng.integers(-32768, 32768, GROUPS))
    logits[0], top[0] = [-32768, 32767, 0, 32766], 32767
    found = _run(
        dut, _control(Operand.DISTANCE, Factor.PARAMETER, shift=shift),
        values=(0, logits), maximum=(1, top),
        parameters=(dut.TABLE, np.full((GROUPS, 4), -multiplier & 0xFFFF)),
    )
    np.testing.assert_array_equal(
        found, operations.scale(logits - top[:, None], multiplier, shift)
    )
