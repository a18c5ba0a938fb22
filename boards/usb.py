"""The USB connector of a board: its pins and clock domains, and the accelerator behind it."""

from types import SimpleNamespace

from amaranth.hdl import ClockDomain, ClockSignal, Instance, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from weft.boards.board import ULPI, Board, Ports
from weft.boards.flows.ecp5 import LOOP_FILTER
from weft.boards.pll import Pll
from weft.design import Design

__all__ = ["add_usb_pll", "usb_accelerator"]

_ULPI_HZ = 60e6  # the clock of the PHY
_ULPI_DIRECTIONS = {"data": "io", "stp": "o", "rst": "o"}  # the others are inputs


def add_usb_pll(m, source, settings: Pll, *, usb, usb_io, enable, lock):
    """Add a PLL at the clock ``source``: ``usb`` has 12 MHz and ``usb_io`` 48 MHz.

    Both run while ``enable``, because a PLL without its ``lock`` has any frequency.
    """
    feedback, clocks = Signal(name="usb_pll_feedback"), Signal(2, name="usb_pll_clocks")
    m.submodules.usb_pll = Instance(
        "EHXPLLL", **{f"p_{name}": value for name, value in settings.parameters.items()},
        **{f"a_{name}": value for name, value in LOOP_FILTER.items()},
        i_CLKI=source, i_CLKFB=feedback, i_RST=0, i_STDBY=0,
        o_CLKOP=feedback, o_CLKOS=clocks[0], o_CLKOS2=clocks[1], o_LOCK=lock,
    )
    for name, source, clock in (("usb_io", clocks[0], usb_io), ("usb", clocks[1], usb)):
        m.submodules[f"gate_{name}"] = Instance("DCCA", i_CLKI=source, i_CE=enable, o_CLKO=clock)


def usb_accelerator(m, platform, ports: Ports, board: Board, config: Design, clock):
    """The accelerator at the USB connector; adds pins and the domains of USB to ``m``."""
    # LUNA, which only these boards need.
    from weft.hw.usb.accelerator import UsbAccelerator
    from weft.hw.usb.device import FULL_SPEED_PACKET, HIGH_SPEED_PACKET

    high = board.usb_pins == ULPI
    pins = _ulpi(m, platform, ports, board, clock) if high else _full_speed(m, ports, board, clock)
    accelerator = UsbAccelerator(
        config, pins, serial=board.usb_serial,
        packet=HIGH_SPEED_PACKET if high else FULL_SPEED_PACKET,
    )
    m.d.comb += accelerator.connect.eq(clock.stable)
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


def _ulpi(m, platform, ports, board, clock):
    """The pins of a PHY, whose clock is that of its domain."""
    m.domains.usb = ClockDomain()
    buffers = {}
    for pin in ULPI:
        direction = _ULPI_DIRECTIONS.get(pin, "i")
        port = ports.request(*board.usb, pin)
        m.submodules[f"ulpi_{pin}"] = buffers[pin] = io.Buffer(direction, port)
        if pin == "clk":
            platform.add_clock_constraint(port.io, _ULPI_HZ)
    m.d.comb += [ClockSignal("usb").eq(buffers["clk"].i), buffers["rst"].o.eq(~clock.stable)]
    m.submodules.ulpi_reset = ResetSynchronizer(~clock.stable, domain="usb")
    # A PHY in reset may have no clock, so the reset of the domain must not be the one of the PHY.
    # LUNA waits for the start of a PHY if there is a pin for it.
    buffers["rst"] = SimpleNamespace(o=Signal(name="ulpi_rst"))
    return SimpleNamespace(**buffers)
