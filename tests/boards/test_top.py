"""The top level of every board: elaboration, clock, reset and LEDs."""

import re

import pytest
from amaranth.hdl import ClockSignal, Module, Signal
from amaranth.sim import Simulator
from tiers import tiers

from weft.boards.bitstream import START_CYCLES, Clock, StatusLeds, prepare
from weft.boards.blocks import GROUPS
from weft.boards.catalog import BOARDS
from weft.boards.flows import FLOWS
from weft.boards.flows.ice40 import Ice40UpFlow
from weft.designs import replace
from weft.network_core.config import NetworkCoreConfig

# Small arrays, which elaborate in a second.
SMALL = {
    "ecp5": dict(rows=2, cols=2, depth=2, dsp_cols=1), "ice40up": dict(rows=1, cols=1),
    "ice40hx": dict(rows=1, cols=1), "gowin": dict(rows=1, cols=2, depth=2),
}


def small(board):
    return prepare(board, replace(board.config, **SMALL[board.device.target]))


# Other sizes of the same boards.
LONG = {
    "ulx3s-12f", "ulx3s-25f", "ulx3s-45f", "ecpix5-45f", "orangecrab-25f", "orangecrab-85f",
    "butterstick",
}


@pytest.fixture(scope="module")
def icebreaker():
    return small(BOARDS["icebreaker"])


@pytest.mark.parametrize("board", tiers(
    BOARDS, "icebreaker", long=LONG
))
def test_every_board_is_elaborated(board):
    design = small(board)
    target = board.device.target
    ecp5, gowin = target == "ecp5", target == "gowin"
    located = {"ecp5": r'LOCATE COMP "(\S+)" SITE', "gowin": r'IO_LOC "(\S+)" '}
    ports = re.findall(located.get(target, r"set_io (\S+) "), design.constraints)
    top = design.rtlil[: design.rtlil.index("\nend\n")]
    declared = re.findall(r"wire width (\d+) (?:input|output|inout) \d+ +\\(\S+)", top)
    assert sorted(ports) == sorted(
        name if width == "1" else f"{name}[{bit}]"
        for width, name in declared for bit in range(int(width))
    )
    link = {"serial": 2, "full": 3, "ulpi": 13}
    speed = "serial" if board.link == "serial" else "full" if "d_p" in board.usb_pins else "ulpi"
    supply = 5 if board.supply else 0  # three levels, a switch, the colour of the LEDs
    assert len(ports) == 1 + link[speed] + supply + len(board.leds)
    frequency = {"ecp5": "FREQUENCY PORT", "gowin": ""}  # of a Gowin FPGA it is an option
    assert frequency.get(target, "set_frequency") in design.constraints
    kind = {"ecp5": "EHXPLLL", "gowin": "rPLL"}.get(
        target, f"SB_PLL40_{'PAD' if board.at_pad else 'CORE'}"
    )
    assert design.rtlil.count(f"cell \\{kind} ") == 1 + bool(board.usb_clocks)
    # Gated clocks instead of a reset.
    assert design.rtlil.count("cell \\DCCA ") == ecp5 + len(board.usb_clocks)
    assert design.rtlil.count("cell \\DQCE ") == gowin
    assert "attribute \\src" not in design.rtlil


@pytest.mark.slow
def test_a_core_for_networks_on_a_board():
    board = BOARDS["ulx3s-25f"].built_for("networks")
    core = replace(board.config.array, rows=2, cols=4, depth=4, lanes=1, dsp_cols=0)
    config = NetworkCoreConfig(array=core, words=512, b_words=32, lines=32, read_vectors=4)
    design = prepare(board, config)
    assert design.config.array == core
    blocks = set(re.findall(r"^module \\top\.accelerator\.core\.(\w+)$", design.rtlil, re.M))
    assert len(blocks) > 8
    assert blocks <= {block for members in GROUPS.values() for block in members}
    assert design.rtlil.count("parameter \\CLKOS_DIV 5\n") == 1  # 550 MHz / 5
    assert "parameter \\CLKOP_DIV 22\n" in design.rtlil
    assert design.board.divisor == 37


@pytest.mark.slow
def test_a_board_of_full_size(icebreaker):
    board = BOARDS["icebreaker"]
    design = prepare(board, board.config)
    assert design.rtlil.count("cell \\SB_MAC16 ") == 8
    assert design.key != icebreaker.key


@pytest.mark.slow
def test_equal_boards_give_equal_text(icebreaker):
    again = small(BOARDS["icebreaker"])
    assert (again.rtlil, again.constraints) == (icebreaker.rtlil, icebreaker.constraints)
    assert again.key == icebreaker.key


def test_blocks_of_the_core_are_in_a_group(icebreaker):
    """The report groups blocks by their names."""
    blocks = re.findall(r"^module \\top\.accelerator\.core\.(\w+)$", icebreaker.rtlil, re.M)
    assert len(blocks) > 10
    assert set(blocks) <= {block for members in GROUPS.values() for block in members}


class ModelPllFlow(Ice40UpFlow):
    """A flow whose PLL is modelled: it locks while ``lock`` is set."""

    def __init__(self):
        self.lock = Signal()

    def pll(self, source, clock):
        assert source == 12
        return super().pll(source, clock)

    def add_pll(self, m, pin, settings, *, at_pad, clk, lock):
        m.d.comb += [clk.eq(ClockSignal()), lock.eq(self.lock)]
        return clk


class ClockWithoutPlatform(Clock):
    """A clock that is its own platform."""

    default_clk, default_clk_frequency = "clk", 12e6  # the interface of a platform

    def __init__(self):
        super().__init__(BOARDS["icebreaker"])

    def elaborate(self, platform):
        return super().elaborate(self)

    def request(self, name, *, dir):
        assert (name, dir) == ("clk", "-")


def test_the_start_is_delayed_after_lock(monkeypatch):
    clock, flow = ClockWithoutPlatform(), ModelPllFlow()
    monkeypatch.setitem(FLOWS, "ice40up", flow)
    delays = []

    async def bench(ctx):
        for _ in range(2):
            ctx.set(flow.lock, 0)
            await ctx.tick().repeat(8)
            for _ in range(2 * START_CYCLES):
                await ctx.tick()
                assert not ctx.get(clock.stable)
            ctx.set(flow.lock, 1)
            delays.append(0)
            while not ctx.get(clock.stable):
                await ctx.tick()
                delays[-1] += 1
            await ctx.tick().repeat(START_CYCLES)
            assert ctx.get(clock.stable)

    simulate(clock, bench)
    assert delays[0] == delays[1] and START_CYCLES < delays[0] < START_CYCLES + 8


@pytest.mark.parametrize(("pulse", "led", "ticks"), [
    ("core_busy", "busy", 2**6), ("rx_error", "error", 2**9),
])
def test_a_pulse_is_stretched(pulse, led, ticks):
    leds = StatusLeds(clock=0.0005)  # 500 Hz: a second is 512 cycles
    values = []

    async def bench(ctx):
        await ctx.tick().repeat(ticks // 2)
        ctx.set(getattr(leds, pulse), 1)
        await ctx.tick()
        ctx.set(getattr(leds, pulse), 0)
        for _ in range(4 * ticks):
            await ctx.tick()
            values.append(ctx.get(getattr(leds, led)))

    simulate(leds, bench)
    assert values[0] == 1 and values[-1] == 0
    assert ticks <= sum(values) <= 2 * ticks
    assert sorted(values, reverse=True) == values


def test_alive_blinks_faster_while_the_core_is_busy():
    leds = StatusLeds(clock=0.0005)
    changes = {}

    async def bench(ctx):
        for core_busy in (0, 1):
            ctx.set(leds.core_busy, core_busy)
            before, changes[core_busy] = ctx.get(leds.alive), 0
            for _ in range(2048):
                await ctx.tick()
                changes[core_busy] += ctx.get(leds.alive) != before
                before = ctx.get(leds.alive)

    simulate(leds, bench)
    assert changes[0] in (7, 8)
    assert 56 <= changes[1] <= 72


def simulate(component, bench):
    m = Module()
    m.submodules.dut = component
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
