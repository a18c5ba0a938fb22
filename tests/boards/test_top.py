"""What is on a board: every one elaborated; its clock, its reset and its LEDs."""

import re

import pytest
from amaranth.hdl import ClockSignal, Module, Signal
from amaranth.sim import Simulator
from tiers import tiers

from weft.boards.bitstream import prepare
from weft.boards.blocks import GROUPS
from weft.boards.catalog import BOARDS
from weft.boards.fit import replace
from weft.boards.top import WAIT, Clock, StatusLeds

# Elaborated in a second.
SMALL = {
    "ecp5": dict(rows=2, cols=2, depth=2, dsp_cols=1), "ice40up": dict(rows=1, cols=1),
    "ice40hx": dict(rows=1, cols=1),
}


def small(board):
    return prepare(board, replace(board.config, **SMALL[board.device.target]))


@pytest.fixture(scope="module")
def icebreaker():
    return small(BOARDS["icebreaker"])


@pytest.mark.parametrize("board", tiers(BOARDS, "icebreaker", "ulx3s-85f"))
def test_every_board_is_elaborated(board):
    design = small(board)
    ecp5 = board.device.family == "ecp5"
    located = r'LOCATE COMP "(\S+)" SITE' if ecp5 else r"set_io (\S+) "
    ports = re.findall(located, design.pins)
    top = design.text[: design.text.index("\nend\n")]
    declared = re.findall(r"wire width 1 (?:input|output|inout) \d+ +\\(\S+)", top)
    assert sorted(ports) == sorted(declared)
    assert len(ports) == 3 + len(board.leds)
    assert ("FREQUENCY PORT" if ecp5 else "set_frequency") in design.pins
    kind = "EHXPLLL" if ecp5 else f"SB_PLL40_{'PAD' if board.at_pad else 'CORE'}"
    assert design.text.count(f"cell \\{kind} ") == 1
    assert design.text.count("cell \\DCCA ") == ecp5  # its clock waits, and it has no reset
    assert "attribute \\src" not in design.text


def test_a_board_of_the_full_size(icebreaker):
    board = BOARDS["icebreaker"]
    design = prepare(board, board.config)
    assert design.text.count("cell \\SB_MAC16 ") == 8
    assert design.key != icebreaker.key


def test_the_text_is_the_same_every_time(icebreaker):
    again = small(BOARDS["icebreaker"])
    assert (again.text, again.pins) == (icebreaker.text, icebreaker.pins)
    assert again.key == icebreaker.key


def test_blocks_of_the_core_are_in_a_group(icebreaker):
    """The report knows each by name."""
    blocks = re.findall(r"^module \\top\.accelerator\.core\.(\w+)$", icebreaker.text, re.M)
    assert len(blocks) > 10
    assert set(blocks) <= {block for members in GROUPS.values() for block in members}


class Locking(Clock):
    """A clock whose PLL locks when it is told to."""

    default_clk, default_clk_frequency = "clk", 12e6  # as of a platform

    def __init__(self):
        super().__init__(BOARDS["icebreaker"])
        self.lock = Signal()

    def elaborate(self, platform):
        return super().elaborate(self)

    def request(self, name, *, dir):
        assert (name, dir) == ("clk", "-")

    def _ice40(self, m, pin, source, made, locked):
        assert source == 12
        m.d.comb += [made.eq(ClockSignal()), locked.eq(self.lock)]
        return made


def test_the_start_waits_until_a_while_after_lock():
    clock = Locking()
    lasted = []

    async def bench(ctx):
        for _ in range(2):
            ctx.set(clock.lock, 0)
            await ctx.tick().repeat(8)
            for _ in range(2 * WAIT):
                await ctx.tick()
                assert not ctx.get(clock.steady)
            ctx.set(clock.lock, 1)
            lasted.append(0)
            while not ctx.get(clock.steady):
                await ctx.tick()
                lasted[-1] += 1
            await ctx.tick().repeat(WAIT)
            assert ctx.get(clock.steady)

    simulated(clock, bench)
    assert lasted[0] == lasted[1] and WAIT < lasted[0] < WAIT + 8


@pytest.mark.parametrize(("pulse", "lamp", "ticks"), [
    ("working", "busy", 2**6), ("broken", "error", 2**9),
])
def test_a_pulse_is_seen_for_a_while(pulse, lamp, ticks):
    lamps = StatusLeds(clock=0.0005)  # 500 Hz: a second is 512 cycles
    seen = []

    async def bench(ctx):
        await ctx.tick().repeat(ticks // 2)
        ctx.set(getattr(lamps, pulse), 1)
        await ctx.tick()
        ctx.set(getattr(lamps, pulse), 0)
        for _ in range(4 * ticks):
            await ctx.tick()
            seen.append(ctx.get(getattr(lamps, lamp)))

    simulated(lamps, bench)
    assert seen[0] == 1 and seen[-1] == 0
    assert ticks <= sum(seen) <= 2 * ticks
    assert sorted(seen, reverse=True) == seen


def test_alive_blinks_and_faster_while_busy():
    lamps = StatusLeds(clock=0.0005)
    changes = {}

    async def bench(ctx):
        for working in (0, 1):
            ctx.set(lamps.working, working)
            before, changes[working] = ctx.get(lamps.alive), 0
            for _ in range(2048):
                await ctx.tick()
                changes[working] += ctx.get(lamps.alive) != before
                before = ctx.get(lamps.alive)

    simulated(lamps, bench)
    assert changes[0] in (7, 8)
    assert 56 <= changes[1] <= 72


def simulated(component, bench):
    m = Module()
    m.submodules.dut = component
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
