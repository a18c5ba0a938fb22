"""MAC cells with one sum and with several sums, against sums of Python integers."""

import random

import pytest
from mac_steps import step_sum
from wrapping import wrap32

from verif.amaranth_bench import play
from verif.interleaved_mac import interleaved_mac
from weft.hw.arith.mac import FastInnerProductMac, Mac, PlainMac

CELLS = [
    pytest.param(PlainMac, 1, id="plain-1"),
    pytest.param(PlainMac, 3, id="plain-3"),
    pytest.param(PlainMac, 8, id="plain-8"),
    pytest.param(interleaved_mac(1, 2), 1, id="interleaved-1-2"),
    pytest.param(interleaved_mac(3, 4), 1, id="interleaved-3-4"),
    pytest.param(interleaved_mac(3, 5), 2, id="interleaved-3-5"),
    pytest.param(interleaved_mac(4, 7), 1, id="interleaved-4-7"),
    pytest.param(interleaved_mac(8, 10), 1, id="interleaved-8-10"),
]
# A cell with one sum that starts from 0 has a folded form.
FOLDED = [
    *(case for case in CELLS if case.values[0].SLOTS == 1 and case.values[0].START is None),
    pytest.param(FastInnerProductMac, 4, id="fip-4"),
]
LOW, HIGH = -(1 << 31), (1 << 31) - 1


def steps(cell, seed, depth, count):
    """Random steps with extreme values; each has the start of its sum."""
    rng = random.Random(seed)
    limits = [-128, 127]
    for _ in range(count):
        step = {
            "a": [rng.choice([*limits, rng.randint(*limits)]) for _ in range(depth)],
            "b": [rng.choice([*limits, rng.randint(*limits)]) for _ in range(depth)],
            "en": int(rng.random() < 0.7),
            "clear": int(rng.random() < 0.2),
        }
        if cell.START is not None:
            step["clear"] &= step["en"]
            step["preload"] = int(rng.random() < 0.3)
            step["init"] = rng.choice([LOW, HIGH, rng.randint(-1000, 1000)])
        yield step


def script(cell, steps):
    """The ports in each cycle: the start of a sum follows its step by LATENCY - SLOTS cycles."""
    delay = cell.LATENCY - cell.SLOTS
    cycles = [{} for _ in range(len(steps) + delay)]
    for t, step in enumerate(steps):
        for name, value in step.items():
            cycles[t if name in ("a", "b", "en") else t + delay][name] = value
    for cycle in cycles[len(steps):]:
        cycle["en"] = 0
    return cycles


def expected(cell, steps):
    """``sum`` in every cycle from LATENCY on, by the protocol."""
    sums = [0] * cell.SLOTS
    for t, step in enumerate(steps):
        slot = t % cell.SLOTS
        if step["clear"] and step["en"]:  # without a step it has no effect
            sums[slot] = 0
        if step.get("preload"):
            sums[slot] = step["init"]
        if step["en"]:
            dot = sum(x * y for x, y in zip(step["a"], step["b"], strict=True))
            sums[slot] = wrap32(sums[slot] + dot)
        yield sums[slot]


@pytest.mark.parametrize("cell, depth", CELLS)
def test_sum_follows_its_step_by_the_latency(cell, depth):
    inputs = list(steps(cell, 1, depth, 300))
    (sums,) = play(cell(depth=depth), script(cell, inputs), "sum", tail=cell.SLOTS)
    assert sums[cell.LATENCY :] == list(expected(cell, inputs))


@pytest.mark.parametrize("cell, depth", CELLS)
def test_largest_products_add_up(cell, depth):
    low = {"a": [-128] * depth, "b": [-128] * depth, "en": 1}
    rounds = 1024 // depth
    inputs = [{**low, "clear": int(n < cell.SLOTS)} for n in range(rounds * cell.SLOTS)]
    (sums,) = play(cell(depth=depth), script(cell, inputs), "sum", tail=cell.SLOTS)
    assert sums[-cell.SLOTS :] == [rounds * depth * 128 * 128] * cell.SLOTS


def folded_script(cell, seed, depth, count):
    """Random steps and shifts; no sum is written in a cycle of ``shift``."""
    rng = random.Random(seed)
    delay = cell.latency(depth) - 1
    cycles = list(steps(cell, seed, depth, count))
    for t, cycle in enumerate(cycles):
        del cycle["clear"]
        written = t >= delay and cycles[t - delay]["en"]
        cycle["shift"] = int(not written and rng.random() < 0.6)
        cycle["above"] = rng.choice([LOW, HIGH, rng.randint(LOW, HIGH)])
    return cycles


@pytest.mark.parametrize("cell, depth", FOLDED)
def test_a_folded_sum_adds_steps_and_loads_the_sum_above(cell, depth):
    cycles = folded_script(cell, 3, depth, 300)
    (sums,) = play(cell(depth=depth, folded=True), cycles, "sum")
    delay, total, expected = cell.latency(depth) - 1, 0, []
    for t, cycle in enumerate(cycles):
        expected.append(total)
        step = cycles[t - delay] if t >= delay else {"en": 0}
        if cycle["shift"]:
            total = cycle["above"]
        elif step["en"]:
            total = wrap32(total + step_sum(cell, step["a"], step["b"]))
    assert sums == expected
    shifts = [cycle["shift"] for cycle in cycles]
    assert sum(shifts) > 30 and any(map(all, zip(shifts, shifts[1:], strict=False)))


def test_clear_is_read_in_the_cycle_after_its_step():
    cycles = [
        {"a": [2], "b": [3], "en": 1},
        {"a": [5], "b": [7]},
        {"en": 0, "clear": 1},
        {},
        {"clear": 0},
    ]
    assert play(PlainMac(depth=1), cycles, "sum", tail=1) == [[0, 0, 6, 35, 35, 35]]


def test_a_start_is_read_when_its_sum_returns():
    # Three sums in five cycles: two cycles after the step.
    step = {"a": [2], "b": [3], "en": 1}
    cycles = [
        {**step, "preload": 0, "init": 100},
        {"en": 0, "init": 200},
        {"preload": 1, "init": 300},
        {"preload": 0, "init": 400},
    ]
    (sums,) = play(interleaved_mac(3, 5)(depth=1), cycles, "sum", tail=5)
    assert sums == [0, 0, 0, 0, 0, 306, 0, 0, 306]


def test_a_start_needs_no_step_and_stays():
    cycles = [{}, {"preload": 1, "init": 9}, {"preload": 0, "init": 5}]
    (sums,) = play(interleaved_mac(2, 3)(depth=1), cycles, "sum", tail=4)
    assert sums == [0, 0, 0, 9, 0, 9, 0]


def test_preload_has_priority_over_clear():
    cycles = [
        {"a": [2], "b": [3], "en": 1}, {"clear": 1, "preload": 1, "init": 100},
    ]
    (sums,) = play(interleaved_mac(1, 2)(depth=1), cycles, "sum")
    assert sums == [0, 0]
    (sums,) = play(interleaved_mac(1, 2)(depth=1), cycles, "sum", tail=1)
    assert sums[-1] == 106


def test_sum_wraps_to_32_bits():
    cycles = [
        {"a": [1], "b": [1], "en": 1}, {"a": [-1], "preload": 1, "init": HIGH},
        {"en": 0, "preload": 0},
    ]
    (sums,) = play(interleaved_mac(1, 2)(depth=1), cycles, "sum", tail=1)
    assert sums == [0, 0, LOW, HIGH]


@pytest.mark.parametrize("cell, start", [
    (PlainMac, []), (FastInnerProductMac, []), (interleaved_mac(2, 3), ["preload", "init"]),
])
def test_only_a_cell_with_a_start_has_ports_for_it(cell, start):
    mac = cell(depth=2)
    assert list(mac.signature.members) == ["a", "b", "en", "clear", *start, "sum"]
    play(mac, [{}], "sum")


def test_a_cell_must_define_its_product():
    with pytest.raises(NotImplementedError):
        Mac.product(None)
