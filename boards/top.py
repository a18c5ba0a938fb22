"""The top level of a board: PLL, start-up, the accelerator on its serial port, status LEDs."""

from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.lib import io, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.utils import ceil_log2

from weft.boards.board import Board
from weft.boards.pins import Ports
from weft.design import Design
from weft.hw.serial.accelerator import SerialAccelerator

__all__ = ["BoardTop"]

# Cycles from the PLL's lock to the start of the accelerator: at first, block RAMs of an iCE40 read
# wrong values for some microseconds.
WAIT = 1024


class BoardTop(wiring.Component):
    """An accelerator at a serial port with the clock, pins and LEDs of a board.

    The accelerator is a `weft.hw.serial.accelerator.SerialAccelerator`.

    The LEDs: ``alive`` blinks about once a second, eight times as fast while the core is busy;
    ``busy`` is on while the core is busy; ``error`` is on for one to two seconds after a damaged or
    lost byte.

    Parameters
    ----------
    board : Board
    config : Design
    """

    def __init__(self, board: Board, config: Design):
        self.board = board
        self.config = config
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain(reset_less=not self.board.device.flow.reset)
        m.submodules.clock = clock = Clock(self.board)
        m.submodules.accelerator = accelerator = SerialAccelerator(
            self.config, divisor=self.board.divisor
        )
        m.submodules.status_leds = status_leds = StatusLeds(clock=self.board.clock)
        ports = Ports(platform)
        m.submodules.rx = rx = io.Buffer("i", ports.request("uart", 0, "rx"))
        m.submodules.tx = tx = io.Buffer("o", ports.request("uart", 0, "tx"))
        if self.board.device.flow.reset:
            m.d.comb += ResetSignal().eq(~clock.stable)
        m.d.comb += [
            ClockSignal().eq(clock.clk),
            accelerator.rx.eq(rx.i), tx.o.eq(accelerator.tx),
        ]
        # Registers keep the LEDs out of the timing of the core.
        m.d.sync += [
            status_leds.core_busy.eq(accelerator.busy),
            status_leds.rx_error.eq(accelerator.rx_error),
        ]
        for name, pin in self.board.leds.items():
            m.submodules[f"led_{name}"] = led = io.Buffer("o", ports.request(*pin))
            m.d.comb += led.o.eq(getattr(status_leds, name))
        return m


class Clock(wiring.Component):
    """The PLL of a board, and the start-up delay after its lock.

    On an iCE40, ``stable`` releases the reset. A design for an ECP5 has no reset: its registers
    start with their configured values, and ``clk`` is gated until ``stable``.

    Parameters
    ----------
    board : Board

    Attributes
    ----------
    clk : Out(1)
        Clock of the accelerator.
    stable : Out(1)
        High from `WAIT` cycles after the PLL has locked, until it loses its lock.
    """

    def __init__(self, board: Board):
        self.board = board
        super().__init__({"clk": wiring.Out(1), "stable": wiring.Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.domains.start = ClockDomain(reset_less=True, local=True)
        pin = platform.request(platform.default_clk, dir="-")
        source = platform.default_clk_frequency / 1e6
        pll_clk, lock, locked = Signal(), Signal(), Signal()
        flow = self.board.device.flow
        start_clk = flow.add_pll(
            m, pin, flow.pll(source, self.board.clock), at_pad=self.board.at_pad,
            clk=pll_clk, lock=lock,
        )
        m.submodules.locked = FFSynchronizer(lock, locked, o_domain="start")
        count = Signal(range(WAIT + 1))
        m.d.comb += ClockSignal("start").eq(start_clk)
        m.d.start += self.stable.eq(count == WAIT)
        with m.If(~locked):
            m.d.start += count.eq(0)
        with m.Elif(count != WAIT):
            m.d.start += count.eq(count + 1)
        if self.board.device.flow.reset:
            m.d.comb += self.clk.eq(pll_clk)
        else:
            m.submodules.gate = Instance(
                "DCCA", i_CLKI=pll_clk, i_CE=self.stable, o_CLKO=self.clk
            )
        return m


class StatusLeds(wiring.Component):
    """Drives the LEDs: stretches pulses so that they are visible.

    Parameters
    ----------
    clock : float
        Clock frequency in MHz.

    Attributes
    ----------
    core_busy : In(1)
        The core is busy.
    rx_error : In(1)
        Pulse: a byte from the host is damaged or lost.
    alive : Out(1)
        Blinks about once a second, eight times as fast while the core is busy.
    busy : Out(1)
        On while the core is busy, and long enough to be visible.
    error : Out(1)
        On for one to two seconds after an error.
    """

    def __init__(self, *, clock):
        self.clock = clock
        super().__init__({
            "core_busy": wiring.In(1), "rx_error": wiring.In(1),
            "alive": wiring.Out(1), "busy": wiring.Out(1), "error": wiring.Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        count = Signal(ceil_log2(int(self.clock * 1e6)))  # wraps after one to two seconds
        slow_tick, fast_tick = Signal(), Signal()
        m.d.sync += [
            count.eq(count + 1), slow_tick.eq(count == 0), fast_tick.eq(count[:-3] == 0),
            self.alive.eq(count[-1]),
        ]
        for pulse, tick, led in (
            (self.core_busy, fast_tick, self.busy), (self.rx_error, slow_tick, self.error),
        ):
            pending = Signal()
            with m.If(tick):
                m.d.sync += [led.eq(pending), pending.eq(0)]
            with m.If(pulse):
                m.d.sync += [led.eq(1), pending.eq(1)]
        with m.If(self.busy):
            m.d.sync += self.alive.eq(count[-4])
        return m
