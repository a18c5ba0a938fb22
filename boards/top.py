"""What runs on a board: clock, start, the accelerator on its serial port, and LEDs that tell."""

from amaranth.build import Subsignal
from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.lib import io, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.utils import ceil_log2

from weft.boards import pll
from weft.boards.board import Board
from weft.config import Config
from weft.hw.serial.accelerator import SerialAccelerator

__all__ = ["Top"]

# Cycles that it waits after the PLL has locked: block RAMs of an iCE40 read wrong for
# microseconds.
WAIT = 1024
# Of an EHXPLLL, as Lattice's own tool sets them for any frequency.
_FILTER = {
    "ICP_CURRENT": "12", "LPF_RESISTOR": "8", "MFG_ENABLE_FILTEROPAMP": "1", "MFG_GMCREF_SEL": "2",
}


class Top(wiring.Component):
    """A `weft.hw.serial.accelerator.SerialAccelerator` with all of a board around it.

    Its LEDs: ``alive`` blinks about once a second, eight times as fast while anything is under way;
    ``busy`` shines then; ``error`` shines for a second or two after a byte that came in broken.

    Parameters
    ----------
    board : Board
    config : Config
    """

    def __init__(self, board: Board, config: Config):
        self.board = board
        self.config = config
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain(reset_less=not self.board.device.reset)
        m.submodules.clock = clock = Clock(self.board)
        m.submodules.accelerator = accelerator = _Watched(
            self.config, divisor=self.board.divisor
        )
        m.submodules.lamps = lamps = StatusLeds(clock=self.board.clock)
        ports = _Ports(platform)
        m.submodules.rx = rx = io.Buffer("i", ports.request("uart", 0, "rx"))
        m.submodules.tx = tx = io.Buffer("o", ports.request("uart", 0, "tx"))
        if self.board.device.reset:
            m.d.comb += ResetSignal().eq(~clock.steady)
        m.d.comb += [
            ClockSignal().eq(clock.clk),
            accelerator.rx.eq(rx.i), tx.o.eq(accelerator.tx),
            lamps.working.eq(accelerator.working), lamps.broken.eq(accelerator.broken),
        ]
        for name, place in self.board.leds.items():
            m.submodules[f"led_{name}"] = led = io.Buffer("o", ports.request(*place))
            m.d.comb += led.o.eq(getattr(lamps, name))
        return m


class _Watched(SerialAccelerator):
    """One that can be looked into.

    Attributes
    ----------
    working : Signal
        Anything is under way.
    broken : Signal
        Pulse: a byte from the host was broken, or lost.
    """

    def __init__(self, config, *, divisor):
        super().__init__(config, divisor=divisor)
        self.working = Signal()
        self.broken = Signal()

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.sync += [
            self.working.eq(m.submodules.core.activity.busy),
            self.broken.eq(m.submodules.receiver.error),
        ]
        return m


class _Ports:
    """The pins of a platform: a resource is requested once, whoever wants a pin of it."""

    def __init__(self, platform):
        self._platform = platform
        self._requested = {}

    def request(self, name, number, pin=None):
        key = name, number
        if key not in self._requested:
            pins = [io.name for io in self._platform.lookup(*key).ios if isinstance(io, Subsignal)]
            free = dict.fromkeys(pins, "-") if pins else "-"
            self._requested[key] = self._platform.request(*key, dir=free)
        return getattr(self._requested[key], pin) if pin else self._requested[key]


class Clock(wiring.Component):
    """The board's clock through its PLL, and what waits until a while after the PLL has locked.

    That is the reset of an iCE40. An ECP5 has none: its registers start as they were configured,
    and it is the clock that waits.

    Parameters
    ----------
    board : Board

    Attributes
    ----------
    clk : Out
    steady : Out
        The clock is what it is to be.
    """

    def __init__(self, board: Board):
        self.board = board
        super().__init__({"clk": wiring.Out(1), "steady": wiring.Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.domains.start = ClockDomain(reset_less=True, local=True)
        pin = platform.request(platform.default_clk, dir="-")
        source = platform.default_clk_frequency / 1e6
        made, locked, lasts = Signal(), Signal(), Signal()
        make = self._ecp5 if self.board.device.family == "ecp5" else self._ice40
        watch = make(m, pin, source, made, locked)
        m.submodules.locked = FFSynchronizer(locked, lasts, o_domain="start")
        count = Signal(range(WAIT + 1))
        m.d.comb += ClockSignal("start").eq(watch)
        m.d.start += self.steady.eq(count == WAIT)
        with m.If(~lasts):
            m.d.start += count.eq(0)
        with m.Elif(count != WAIT):
            m.d.start += count.eq(count + 1)
        if self.board.device.reset:
            m.d.comb += self.clk.eq(made)
        else:
            m.submodules.gate = Instance("DCCA", i_CLKI=made, i_CE=self.steady, o_CLKO=self.clk)
        return m

    # Each gives the clock that the start is counted with.

    def _ice40(self, m, pin, source, made, locked):
        found = pll.ice40(source, self.board.clock)
        if self.board.at_pad:
            kind, reference = "PAD", {"i_PACKAGEPIN": pin.io}
        else:
            m.submodules.pin = buffer = io.Buffer("i", pin)
            kind, reference = "CORE", {"i_REFERENCECLK": buffer.i}
        m.submodules.pll = Instance(
            f"SB_PLL40_{kind}", **{f"p_{name}": value for name, value in found.parameters.items()},
            i_RESETB=1, i_BYPASS=0, **reference, o_PLLOUTGLOBAL=made, o_LOCK=locked,
        )
        return made

    def _ecp5(self, m, pin, source, made, locked):
        found = pll.ecp5(source, self.board.clock)
        m.submodules.pin = buffer = io.Buffer("i", pin)
        m.submodules.pll = Instance(
            "EHXPLLL", **{f"p_{name}": value for name, value in found.parameters.items()},
            **{f"a_{name}": value for name, value in _FILTER.items()},
            i_CLKI=buffer.i, i_CLKFB=made, i_RST=0, i_STDBY=0, o_CLKOP=made, o_LOCK=locked,
        )
        return buffer.i  # a clock that anything else has too cannot be brought to the gate


class StatusLeds(wiring.Component):
    """Pulses made long enough to be seen.

    Parameters
    ----------
    clock : float
        MHz.

    Attributes
    ----------
    working, broken : In
    alive, busy, error : Out
    """

    def __init__(self, *, clock):
        self.clock = clock
        super().__init__({
            "working": wiring.In(1), "broken": wiring.In(1),
            "alive": wiring.Out(1), "busy": wiring.Out(1), "error": wiring.Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        count = Signal(ceil_log2(int(self.clock * 1e6)))  # goes round in one to two seconds
        whole, part = Signal(), Signal()
        m.d.sync += [
            count.eq(count + 1), whole.eq(count == 0), part.eq(count[:-3] == 0),
            self.alive.eq(count[-1]),
        ]
        for pulse, tick, lamp in (
            (self.working, part, self.busy), (self.broken, whole, self.error),
        ):
            seen = Signal()
            with m.If(tick):
                m.d.sync += [lamp.eq(seen), seen.eq(0)]
            with m.If(pulse):
                m.d.sync += [lamp.eq(1), seen.eq(1)]
        with m.If(self.busy):
            m.d.sync += self.alive.eq(count[-4])
        return m
