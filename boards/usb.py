"""The USB connector of a board: its pins and clock domains, and the accelerator behind it."""

from collections.abc import Mapping
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


def usb_accelerator(m, platform, ports: Ports, board: Board, config: Design, clock, ready):
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
