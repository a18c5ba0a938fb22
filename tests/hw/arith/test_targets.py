"""The MAC cells of the targets: twins against Python integers, and against their primitives."""

import itertools
import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped
from mac_steps import step_sum
from wrapping import wrap32

from verif.amaranth_bench import play
from verif.primitives import cosimulate
from weft.hw.arith.ecp5 import Ecp5FastInnerProductMac, Ecp5PlainMac
from weft.hw.arith.gowin import GowinFastInnerProductMac, GowinPlainMac
from weft.hw.arith.ice40 import (
    Ice40FastInnerProductMac,
    Ice40LogicFastInnerProductMac,
    Ice40LogicPlainMac,
    Ice40PlainMac,
)
from weft.hw.delay import pipeline
from weft.sim.primitives import ECP5_MODELS, GOWIN_MODELS, ICE40_MODELS

PLAIN = {
    "ecp5": Ecp5PlainMac, "ice40up": Ice40PlainMac, "ice40hx": Ice40LogicPlainMac,
    "gowin": GowinPlainMac,
}
FAST = {
    "ecp5": Ecp5FastInnerProductMac, "ice40up": Ice40FastInnerProductMac,
    "ice40hx": Ice40LogicFastInnerProductMac, "gowin": GowinFastInnerProductMac,
}


class OneBlockMac(Ice40PlainMac):
    """Two products in a DSP block, the others in logic."""

    def __init__(self, **options):
        super().__init__(blocks=1, **options)


ALL = pytest.mark.parametrize("cell, depth", [
    pytest.param(cells[target], depth, id=f"{target}-{name}-{depth}")
    for name, cells, depths in (("plain", PLAIN, (1, 2, 5)), ("fip", FAST, (2, 4)))
    for target in cells for depth in depths
] + [pytest.param(OneBlockMac, depth, id=f"ice40up-one-block-{depth}") for depth in (1, 3, 6)])
RESOURCES = "dsp", "ram", "logic"
# Every cell and depth, in DSP blocks; a cell without squares uses logic for RAM.
CELL_AND_RESOURCE = pytest.mark.parametrize("cell, depth, resource", [
    pytest.param(
        *case.values, resource, id=f"{resource}-{case.id}",
        marks=() if resource == "dsp" or case.values[1] in (2, 3) else pytest.mark.slow,
    )
    for case in ALL.args[1] for resource in RESOURCES
])


def steps(depth, count):
    rng = random.Random(depth)
    limits = [-128, 127]
    for _ in range(count):
        a, b = ([rng.choice([*limits, rng.randint(*limits)]) for _ in range(depth)] for _ in "ab")
        yield {"a": a, "b": b, "en": int(rng.random() < 0.7)}


@CELL_AND_RESOURCE
def test_sum_follows_its_step_by_the_latency(cell, depth, resource):
    rng = random.Random(2)
    latency = cell.latency(depth)
    script = [*steps(depth, 300), *({"en": 0} for _ in range(latency))]
    clears = [cycle["en"] and rng.random() < 0.2 for cycle in script]
    for t, cycle in enumerate(script):
        cycle["clear"] = int(t >= latency - 1 and clears[t - latency + 1])
    (sums,) = play(cell(depth=depth, resource=resource), script, "sum")
    total = 0
    for t, cycle in enumerate(script[:-latency]):
        total = 0 if clears[t] else total
        total += step_sum(cell, cycle["a"], cycle["b"]) if cycle["en"] else 0
        assert sums[t + latency] == total


@CELL_AND_RESOURCE
def test_folded_sums_are_shifted(cell, depth, resource):
    """Two tiles: the second one starts from the last value that was shifted in."""
    latency = cell.latency(depth)
    tile = list(steps(depth, 20))
    total = sum(step_sum(cell, cycle["a"], cycle["b"]) for cycle in tile if cycle["en"])
    no_step = {"en": 0, "above": 5}
    first = [*({**cycle, "shift": 0} for cycle in tile), *[no_step] * (latency - 1)]
    shifted_in = [77, -(1 << 31), -12345]
    shifts = [{"shift": 1, "above": value} for value in shifted_in]
    dut = cell(depth=depth, resource=resource, folded=True)
    (sums,) = play(dut, [*first, *shifts, *first], "sum", tail=1)
    assert sums[len(first) : len(first) + 4] == [total, *shifted_in]
    assert sums[-1] == shifted_in[-1] + total


@ALL
def test_largest_products_add_up(cell, depth):
    low = {"a": [-128] * depth, "b": [-128] * depth, "en": 1, "clear": 0}
    rounds = 40
    dut = cell(depth=depth, resource="dsp")
    (sums,) = play(dut, [low] * rounds, "sum", tail=cell.latency(depth))
    assert sums[-1] == wrap32(rounds * step_sum(cell, low["a"], low["b"]))


@pytest.mark.parametrize("target", PLAIN)
@pytest.mark.parametrize("cells, depth, levels", [
    (PLAIN, 1, 0), (PLAIN, 2, 1), (PLAIN, 5, 3), (PLAIN, 64, 6), (FAST, 2, 0), (FAST, 6, 2),
])
def test_a_level_of_the_tree_is_a_cycle(target, cells, depth, levels):
    cell = cells[target]
    one = {"ecp5": 5, "gowin": 6}.get(target, 4)
    assert cell.latency(depth) == cell.LATENCY + levels == one + levels


class DelayedShift(wiring.Component):
    """A folded cell whose shift is delayed, so that it never meets a step."""

    def __init__(self, mac, latency):
        self.mac = mac
        self.latency = latency
        super().__init__(mac.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.mac = mac = self.mac
        connect(m, mac, flipped(self))
        m.d.comb += [
            mac.en.eq(self.en & ~self.shift),
            mac.shift.eq(pipeline(m, self.shift, self.latency - 1, "shift")),
        ]
        return m


# Quick cells, and what the folded ones multiply in: each pair of settings is tested quickly.
QUICK = {
    "ecp5-fip-4": ("dsp", "ram"), "ice40up-fip-4": ("logic",), "ice40hx-fip-4": ("dsp",),
    "ice40up-one-block-3": ("logic",), "gowin-fip-4": ("logic",), "gowin-plain-2": ("dsp",),
}
MODELS = {"ecp5": ECP5_MODELS, "gowin": GOWIN_MODELS}


# Each takes two seconds: the cell and its twin are exported, compiled and simulated.
@pytest.mark.parametrize("cell, depth, resource, folded", [
    pytest.param(
        *case.values, resource, folded,
        id=f"{'folded' if folded else 'overlapped'}-{resource}-{case.id}",
        marks=() if (resource in QUICK.get(case.id, ())) == folded and case.id in QUICK
        else pytest.mark.slow if number % 4 == 0 and folded == (number % 8 == 0)
        else pytest.mark.long,
    )
    for number, (case, resource) in enumerate(itertools.product(ALL.args[1], RESOURCES))
    for folded in (True, False) if resource != "ram" or case.values[0].SQUARES
])
def test_primitives_equal_the_twin(cell, depth, resource, folded):
    models = MODELS.get(cell.__module__.rpartition(".")[2], ICE40_MODELS)
    dut = cell(depth=depth, resource=resource, folded=folded)
    dut = DelayedShift(dut, cell.latency(depth)) if folded else dut
    assert cosimulate(dut, cycles=2000, models=models.read_text(encoding="utf-8")) == "PASS"
