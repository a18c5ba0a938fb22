"""The processing element against a model of its sums and its result chain, in every cycle."""

import random

import pytest
from amaranth.hdl import Module
from tiers import quick

from verif.amaranth_bench import play, put, simulate, ticks
from verif.interleaved_mac import interleaved_mac
from weft.boards.toolchain import to_rtlil
from weft.config import Config
from weft.hw.arith.ecp5 import Ecp5PlainMac
from weft.hw.arith.mac import PlainMac
from weft.hw.array.systolic import ProcessingElement
from weft.hw.core import Core

CELLS = [
    PlainMac, interleaved_mac(1, 2), interleaved_mac(3, 4), interleaved_mac(3, 5),
    interleaved_mac(2, 4),
]


def start_delay(cell):
    """Cycles from a step to its `clear` or `preload`."""
    return cell.LATENCY - cell.SLOTS


class Model:
    """A PE, cycle by cycle: returns its output, then applies its inputs."""

    def __init__(self, cell):
        self.cell = cell
        self.chain = [0] * cell.SLOTS
        self.sums = [0] * cell.SLOTS
        self.visible = {}  # sum of the MAC cell, by cycle
        self.products = {}  # product of the step, by cycle
        self.time = 0

    def cycle(self, inputs):
        control = inputs["control"]
        below = self.chain[-1]
        if control["en"]:
            self.products[self.time] = inputs["a"][0] * inputs["b"][0]
        step = self.time - start_delay(self.cell)
        slot = step % self.cell.SLOTS
        if control["clear"] and step in self.products:
            self.sums[slot] = 0
        if inputs.get("preload"):
            self.sums[slot] = inputs["init"]
        self.sums[slot] += self.products.get(step, 0)
        self.visible[step + self.cell.LATENCY] = self.sums[slot]
        if control["capture"]:
            self.chain = [self.visible.get(self.time, 0), *self.chain[:-1]]
        elif inputs["shift"]:
            self.chain = [inputs["above"], *self.chain[:-1]]
        self.time += 1
        return below


@pytest.mark.parametrize("lut_ram", [None, "distributed"])
@pytest.mark.parametrize("cell", CELLS)
def test_random_inputs(cell, lut_ram):
    rng = random.Random(cell.SLOTS)
    names = {"en": 0.7, "clear": 0.2, "capture": 0.3}
    script = []
    for _ in range(500):
        inputs = {
            "a": [rng.randint(-128, 127)],
            "b": [rng.randint(-128, 127)],
            "control": {name: rng.random() < odds for name, odds in names.items()},
            "shift": rng.random() < 0.5,
            "above": rng.randint(-(1 << 20), 1 << 20),
        }
        if cell.START is not None:
            inputs |= {"preload": rng.random() < 0.2, "init": rng.randint(-(1 << 20), 1 << 20)}
            # Without a step the effect of a clear is undefined.
            delay = start_delay(cell)
            step = [inputs, *reversed(script)][delay] if delay <= len(script) else None
            inputs["control"]["clear"] &= step is not None and step["control"]["en"]
        script.append(inputs)
    (below,) = play(ProcessingElement(mac=cell(depth=1), lut_ram=lut_ram), script, "below")
    model = Model(cell)
    assert below == [model.cycle(inputs) for inputs in script]


def test_a_captured_sum_stays_while_the_next_one_accumulates():
    script = [
        {"a": [3], "b": [4], "control": {"en": 1}},
        {"a": [5], "b": [6], "control": {"en": 1, "clear": 1}},
        {"control": {"clear": 1, "capture": 1}},
        {"control": {}},
    ]
    (below,) = play(ProcessingElement(mac=PlainMac(depth=1)), script, "below", tail=3)
    assert below == [0, 0, 0, 12, 12, 12, 12]


@pytest.mark.parametrize("cell", CELLS[1:])
def test_sums_start_from_init(cell):
    # One step for each slot, with its own start value; other cycles have other values.
    slots = cell.SLOTS
    script = []
    for t in range(cell.LATENCY + slots):
        starts = 0 <= t - start_delay(cell) < slots
        control = {"en": t < slots, "capture": t >= cell.LATENCY}
        script.append({
            "a": [7], "b": [-3], "control": control, "preload": starts, "init": 1000 * t,
        })
    script += [{"control": {}, "shift": 1}] * slots
    (below,) = play(ProcessingElement(mac=cell(depth=1)), script, "below")
    assert below[-slots:] == [1000 * (start_delay(cell) + slot) - 21 for slot in range(slots)]


@pytest.mark.parametrize("cell", CELLS[:3])
def test_only_a_cell_with_a_start_has_ports_for_it(cell):
    element = ProcessingElement(mac=cell(depth=1))
    assert (cell.START is not None) == ("preload" in element.signature.members)
    assert (cell.START is not None) == ("init" in element.signature.members)
    play(element, [{}], "below")


@pytest.mark.parametrize("cell", [PlainMac, Ecp5PlainMac])
def test_folded_sums_are_the_result_chain(cell):
    """Three PEs, two tiles: PE p is shifted p + 1 times, then starts the next tile from 0."""
    column = [ProcessingElement(mac=cell(depth=1, folded=True)) for _ in range(3)]
    m = Module()
    m.submodules += column
    m.d.comb += [
        lower.above.eq(upper.below) for upper, lower in zip(column, column[1:], strict=False)
    ]

    async def bench(ctx):
        for tile in (1, 2):
            for pe, value in enumerate((3, 5, -7)):
                put(ctx, column[pe].a, [value * tile])
                put(ctx, column[pe].b, [11])
                ctx.set(column[pe].control.en, 1)
            await ticks(ctx, tile)
            for pe in column:
                ctx.set(pe.control.en, 0)
                ctx.set(pe.control.clear, 1)  # no effect
                ctx.set(pe.control.capture, 1)
            await ticks(ctx, cell.LATENCY - 1)
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


@pytest.mark.parametrize(("slots", "lut_ram", "rings"), [
    (1, "distributed", 0), (4, "distributed", 1), (4, None, 0),
])
def test_several_finished_sums_wait_in_lut_ram(slots, lut_ram, rings):
    text = to_rtlil(ProcessingElement(mac=interleaved_mac(slots, 5)(depth=1), lut_ram=lut_ram))
    assert text.count('attribute \\ram_style "distributed"') == rings


@pytest.mark.parametrize(("target", "rings"), quick(1, [
    ("ecp5", 2), ("ice40up", 0), ("generic", 0),
]))
def test_a_bf16_core_has_lut_ram_if_the_family_has_it(target, rings):
    core = Core(Config(dtype="bf16", target=target, rows=1, cols=2))
    assert to_rtlil(core).count('attribute \\ram_style "distributed"') == rings
