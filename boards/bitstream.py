"""The flow from a board and a Config to a bitstream: top level, synthesis, place and route."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace

from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.lib import io, wiring
from amaranth.lib.cdc import FFSynchronizer, ResetSynchronizer
from amaranth.utils import ceil_log2

from weft.boards import pll
from weft.boards.benchmark import CriticalPath, OtherClock, PnrResult, RoutedDesign
from weft.boards.board import ULPI, Board, BoardError, Ports, check_pins, resource_of, usb_pll
from weft.boards.flows.ecp5 import LOOP_FILTER
from weft.boards.memory import has_sdram
from weft.boards.pll import Pll
from weft.boards.sdram import add_sdram
from weft.boards.toolchain import (
    Netlist,
    SeedError,
    Toolchain,
    ToolchainError,
    digest,
    digests,
    family_sources,
)
from weft.design import CoreDesign, PerKind
from weft.files import write_text
from weft.hw.serial.accelerator import SerialAccelerator

__all__ = [
    "BoardDesign", "BoardTop", "add_usb_pll", "best_route", "prepare", "route", "synthesize",
    "usb_accelerator",
]

# The gate of a clock, its input and its output, by family.
_GATES = {"ecp5": ("DCCA", "CLKI", "CLKO"), "gowin": ("DQCE", "CLKIN", "CLKOUT")}
_ULPI_HZ = 60e6  # the clock of the PHY
_ULPI_DIRECTIONS = {"data": "io", "stp": "o", "rst": "o"}  # the others are inputs
# Cycles from the PLL's lock to the start of the accelerator: at first, block RAMs of an iCE40 read
# wrong values for some microseconds.
START_CYCLES = 1024


def add_usb_pll(m, source, settings: Pll, clocks: Mapping[str, Signal], *, enable, lock):
    """Add a PLL at the clock ``source``, whose outputs are the ``clocks`` in their order.

    They run while ``enable``, because a PLL without its ``lock`` has any frequency.
    """
    feedback, outputs = Signal(name="usb_pll_feedback"), Signal(2, name="usb_pll_clocks")
    m.submodules.usb_pll = Instance(
        "EHXPLLL", **{f"p_{name}": value for name, value in settings.parameters.items()},
        **{f"a_{name}": value for name, value in LOOP_FILTER.items()},
        i_CLKI=source, i_CLKFB=feedback, i_RST=0, i_STDBY=0,
        o_CLKOP=feedback, o_CLKOS=outputs[0], o_CLKOS2=outputs[1], o_LOCK=lock,
    )
    for (name, clock), output in zip(clocks.items(), outputs, strict=False):
        m.submodules[f"gate_{name}"] = Instance("DCCA", i_CLKI=output, i_CE=enable, o_CLKO=clock)


def usb_accelerator(m, platform, ports: Ports, board: Board, config: CoreDesign, clock, ready):
    """The accelerator at the USB connector; adds pins and the domains of USB to ``m``.

    ``ready`` is high when the pins work.
    """
    # LUNA, which only these boards need.
    from weft.hw.usb.accelerator import UsbAccelerator
    from weft.hw.usb.device import FULL_SPEED_PACKET, HIGH_SPEED_PACKET

    high = board.usb_pins == ULPI
    pins = (
        _ulpi(m, platform, ports, board, clock, ready) if high
        else _full_speed(m, ports, board, clock)
    )
    accelerator = UsbAccelerator(
        config, pins, serial=board.usb_serial,
        packet=HIGH_SPEED_PACKET if high else FULL_SPEED_PACKET,
    )
    m.d.comb += accelerator.connect.eq(ready)
    return accelerator


def _full_speed(m, ports, board, clock):
    """The wires of full speed, and their domains."""
    m.domains.usb = ClockDomain(reset_less=True)
    m.domains.usb_io = ClockDomain(reset_less=True)
    m.d.comb += [ClockSignal("usb").eq(clock.usb), ClockSignal("usb_io").eq(clock.usb_io)]
    buffers = {}
    for pin in ("d_p", "d_n"):
        m.submodules[pin] = buffers[pin] = io.Buffer("io", ports.request(*board.usb, pin))
    # A second pin of a pull-up is that of D-, for low speed: it floats.
    m.submodules.pullup = buffers["pullup"] = io.Buffer(
        "o", ports.request(*board.usb, "pullup")[0]
    )
    return SimpleNamespace(**buffers)


def _ulpi(m, platform, ports, board, clock, ready):
    """The pins of a PHY, and the domain of its clock, which it gives or takes."""
    m.domains.usb = ClockDomain()
    buffers = {}
    for pin in ULPI[1:]:
        m.submodules[f"ulpi_{pin}"] = buffers[pin] = io.Buffer(
            _ULPI_DIRECTIONS.get(pin, "i"), ports.request(*board.usb, pin)
        )
    m.d.comb += [
        ClockSignal("usb").eq(_phy_clock(m, platform, ports.request(*board.usb, "clk"), clock)),
        buffers["rst"].o.eq(~ready),
    ]
    m.submodules.ulpi_reset = ResetSynchronizer(~ready, domain="usb")
    # A PHY in reset may have no clock, so the reset of the domain must not be the one of the PHY.
    # LUNA waits for the start of a PHY if there is a pin for it.
    buffers["rst"] = SimpleNamespace(o=Signal(name="ulpi_rst"))
    return SimpleNamespace(**buffers)


def _phy_clock(m, platform, port, clock):
    """The clock of a PHY: at the pin ``port``, or of the PLL and then given to this pin."""
    if "usb" not in clock.signature.members:
        m.submodules.ulpi_clk = buffer = io.Buffer("i", port)
        platform.add_clock_constraint(port.io, _ULPI_HZ)
        return buffer.i
    # A register of the pin makes the edges: ordinary wires would delay them by some nanoseconds.
    m.submodules.ulpi_clk = output = io.DDRBuffer("o", port, o_domain="usb")
    m.d.comb += [output.o[0].eq(1), output.o[1].eq(0)]
    return clock.usb


class BoardTop(wiring.Component):
    """An accelerator at the link of a board, with its clock, pins and LEDs.

    The accelerator is a `weft.hw.serial.accelerator.SerialAccelerator`, or a
    `weft.hw.usb.accelerator.UsbAccelerator` on a board whose link is USB.

    The LEDs: ``alive`` blinks about once a second, eight times as fast while the core is busy;
    ``busy`` is on while the core is busy; ``error`` is on for one to two seconds after a damaged or
    lost byte.

    Parameters
    ----------
    board : Board
    config : `weft.design.CoreDesign`
    """

    def __init__(self, board: Board, config: CoreDesign):
        self.board = board
        self.config = config
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain(reset_less=not self.board.device.flow.reset)
        sdram = has_sdram(self.config)
        m.submodules.clock = clock = Clock(self.board, sdram=sdram)
        serial = self.board.link == "serial"
        if serial:
            m.submodules.accelerator = accelerator = SerialAccelerator(
                self.config, divisor=self.board.divisor
            )
        m.submodules.status_leds = status_leds = StatusLeds(clock=self.board.clock)
        ports = Ports(platform)
        if serial:
            m.submodules.rx = rx = io.Buffer("i", ports.request("uart", 0, "rx"))
            m.submodules.tx = tx = io.Buffer("o", ports.request("uart", 0, "tx"))
        else:
            m.submodules.accelerator = accelerator = usb_accelerator(
                m, platform, ports, self.board, self.config, clock, self._ready(m, clock)
            )
        if sdram:
            add_sdram(
                m, ports, self.board, self.config, accelerator.memory, clock.sdram, clock.step
            )
        if self.board.device.flow.reset:
            m.d.comb += ResetSignal().eq(~clock.stable)
        m.d.comb += ClockSignal().eq(clock.clk)
        if serial:
            m.d.comb += [accelerator.rx.eq(rx.i), tx.o.eq(accelerator.tx)]
        # Registers keep the LEDs out of the timing of the core.
        m.d.sync += [
            status_leds.core_busy.eq(accelerator.busy),
            status_leds.rx_error.eq(accelerator.rx_error),
        ]
        for name, pin in self.board.leds.items():
            m.submodules[f"led_{name}"] = led = io.Buffer("o", ports.request(*pin))
            m.d.comb += led.o.eq(getattr(status_leds, name))
        return m


    def _ready(self, m, clock):
        """High when the pins of USB work: the clock is stable, and their supply is on."""
        if self.board.supply is None:
            return clock.stable
        m.submodules.supply = supply = self.board.supply(clock=self.board.clock)
        return clock.stable & supply.ready


class Clock(wiring.Component):
    """The PLL of a board, and the start-up delay after its lock.

    On an iCE40, ``stable`` releases the reset. Other designs have no reset: their registers
    start with their configured values, and ``clk`` is gated until ``stable``.

    Parameters
    ----------
    board : Board
    sdram : bool
        Whether the SDRAM is used.

    Attributes
    ----------
    clk : Out(1)
        Clock of the accelerator.
    sdram : Out(1)
        Clock of the SDRAM, if it is used. It runs always, as the chip must have it before it gets
        a command.
    step : In(1)
        Beside it: moves this clock, as of `weft.boards.flows.flow.Flow.add_pll`.
    stable : Out(1)
        High from START_CYCLES after the PLL has locked, until it loses its lock; on a board with
        the clocks below, after both PLLs.
    usb, usb_io : Out(1)
        Clocks of a USB device of full speed, 12 and 48 MHz, or ``usb`` of a PHY, 60 MHz; only on a
        board with this link, whose `Board.usb_clocks` has them.
    """

    def __init__(self, board: Board, *, sdram=False):
        self.board = board
        self._usb = board.usb_clocks
        self._sdram = sdram
        names = "clk", "stable", *(("sdram",) if sdram else ()), *self._usb
        step = {"step": wiring.In(1)} if sdram else {}
        super().__init__({name: wiring.Out(1) for name in names} | step)

    def elaborate(self, platform):
        m = Module()
        m.domains.start = ClockDomain(reset_less=True, local=True)
        pin = platform.request(platform.default_clk, dir="-")
        source = platform.default_clk_frequency / 1e6
        pll_clk, lock, locked = Signal(), Signal(), Signal()
        flow = self.board.device.flow
        settings, shifted = flow.pll(source, self.board.clock), {}
        if self._sdram:
            settings = pll.shifted(flow.name, settings, self.board.sdram.phase)
            shifted["shifted"] = self.sdram
            if pll.moves(flow.name):
                shifted["step"] = self.step
        start_clk = flow.add_pll(
            m, pin, settings, at_pad=self.board.at_pad, clk=pll_clk, lock=lock, **shifted
        )
        if self._usb:
            usb_lock, core_lock, lock = Signal(), lock, Signal()
            m.d.comb += lock.eq(core_lock & usb_lock)
            add_usb_pll(
                m, start_clk, usb_pll(self.board, source),
                {name: getattr(self, name) for name in self._usb},
                enable=self.stable, lock=usb_lock,
            )
        m.submodules.locked = FFSynchronizer(lock, locked, o_domain="start")
        count = Signal(range(START_CYCLES + 1))
        m.d.comb += ClockSignal("start").eq(start_clk)
        m.d.start += self.stable.eq(count == START_CYCLES)
        with m.If(~locked):
            m.d.start += count.eq(0)
        with m.Elif(count != START_CYCLES):
            m.d.start += count.eq(count + 1)
        if self.board.device.flow.reset:
            m.d.comb += self.clk.eq(pll_clk)
        else:
            kind, source, output = _GATES[flow.name]
            m.submodules.gate = Instance(kind, **{
                f"i_{source}": pll_clk, "i_CE": self.stable, f"o_{output}": self.clk,
            })
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


@dataclass(frozen=True)
class BoardDesign:
    """The input of the tools.

    Attributes
    ----------
    board : Board
    config : `weft.design.CoreDesign`
    rtlil : str
        The design, in RTLIL.
    constraints : str
        Pins and clocks for place and route: LPF for an ECP5, PCF for an iCE40, CST for Gowin.
    """

    board: Board
    config: CoreDesign
    rtlil: str
    constraints: str

    @property
    def shape(self) -> str:
        """What the array has, in words."""
        return _SHAPES.of(self.config)(self.config)

    @property
    def key(self) -> str:
        """16 hexadecimal digits: a digest of the design, tools, flows and passes over netlists."""
        device = self.board.device
        return digest("board", device, self.rtlil, self.constraints, *family_sources(device))

    @property
    def digests(self) -> dict[str, str]:
        """`weft.boards.toolchain.digests`: the order of the constraints does not count, and of
        the seeds only the first one does.
        """
        lines = sorted(line for line in self.constraints.splitlines() if line[:1] != "#")
        return digests(self.rtlil, self.board.device, self.board.seed, lines)


def _cells(config):
    array = config.array
    return f"{array.rows} x {array.cols} PEs of {array.depth} MAC"


_SHAPES = PerKind(
    product=_cells, network=_cells,
    language=lambda config: f"1 x {config.columns} PEs of {config.depth} MAC",
)


def prepare(board: Board, config: CoreDesign) -> BoardDesign:
    """Elaborate ``config`` for ``board``; equal arguments give equal text.

    Raises BoardError if the platform lacks the serial port or a pin that the board names, and
    PllError if the PLL cannot make the board's clock.
    """
    check_pins(replace(board, config=config))
    plan = board.platform().prepare(BoardTop(board, config), "top", emit_src=False)
    constraints = plan.files[f"top.{board.device.flow.constraints}"]
    return BoardDesign(board, config, plan.files["top.il"], constraints)


def synthesize(tools: Toolchain, design: BoardDesign, folder: Path) -> Netlist:
    """The netlist of ``design``, in a subfolder of ``folder``; synthesized only once.

    Raises ToolchainError if Yosys fails.
    """
    netlist_folder = Path(folder) / f"{design.board.name}-{design.key}"
    return Netlist.of(netlist_folder) or tools.synthesize(
        design.rtlil, design.board.device, netlist_folder
    )


def route(tools: Toolchain, design: BoardDesign, netlist: Netlist, seed: int) -> RoutedDesign:
    """The netlist placed and routed with the board's pins, and its bitstream; made only once.

    Raises ToolchainError if a tool fails, and BoardError if the package of the board's FPGA does
    not have a pin of the board.
    """
    board, file = design.board, netlist.folder / f"routed-{seed}.json"
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
        return _from_json(
            json.loads(file.read_text(encoding="utf-8")), netlist.folder, board.device.spare
        )
    try:
        routed = tools.route(netlist, board.device, seed, design.constraints, board.clock)
    except ToolchainError as error:
        missing = board.device.flow.missing_pin.search(error.output)
        if not missing:
            raise
        raise BoardError(
            f"{resource_of(board, missing[1])} of {board.name} must be a pin of"
            f" {board.device.package}, not {missing[1]!r}"
        ) from error
    value = {
        "pnr": asdict(routed.pnr), "clock": routed.clock,
        "others": [asdict(each) for each in routed.others],
        "layout": routed.layout.name, "bitstream": routed.bitstream.name,
    }
    write_text(file, json.dumps(value))
    return routed


def _from_json(value, folder, spare):
    critical_path = value["pnr"]["critical_path"]
    pnr = PnrResult(**value["pnr"] | {
        "critical_path": CriticalPath(**critical_path | {"names": tuple(critical_path["names"])})
    })
    return RoutedDesign(
        pnr, value["clock"], folder / value["layout"], folder / value["bitstream"],
        tuple(OtherClock(**each) for each in value["others"]), spare,
    )


def best_route(
    tools: Toolchain, design, netlist, seeds, say=lambda text: None
) -> tuple[int, RoutedDesign]:
    """Route with one seed after another until one meets all clocks; return it and its result.

    If no seed meets them, return the one with the largest margin. ``say(text)`` is called with
    the result of each. There is at least one seed. Raises ToolchainError if a tool fails, and
    SeedError if nextpnr finds no placement or no routing with any seed.
    """
    results = {}
    for seed in seeds:
        try:
            routed = results[seed] = route(tools, design, netlist, seed)
        except SeedError as error:
            if seed == seeds[-1] and not results:
                raise
            say(f"seed {seed}: {error}")
            continue
        say("; ".join([
            f"seed {seed}: {routed.pnr.fmax:.1f} MHz, {routed.needed:.1f} MHz required",
            *(f"{each.name} {each.fmax:.1f} MHz, {each.required:.1f} MHz required"
              for each in routed.missed),
        ]))
        if routed.margin >= 1:
            break
    return max(results.items(), key=lambda item: item[1].margin)
