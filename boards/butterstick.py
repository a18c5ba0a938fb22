"""ButterStick r1.0: ECP5-85F of speed grade 8, 30 MHz; its only link is USB, with a PHY.

The PHY takes its clock from the FPGA. The FPGA also controls the regulators that supply the banks
of the three SYZYGY connectors, and the third bank is the one of the PHY.

Source: the package amaranth-boards, https://github.com/butterstick-fpga/butterstick-bootloader.
"""

from amaranth.build import Attrs, Pins, Resource
from amaranth.hdl import Module, Signal
from amaranth.lib import io, wiring
from amaranth_boards import butterstick
from amaranth_boards.resources import LEDResources, ULPIResource

from weft.boards.board import Board
from weft.boards.designs import ECP5_85F

__all__ = ["BOARDS", "ButterStickPlatform", "Supply"]

_VOLTS = 1.8  # of all three banks: the least that the PHY takes
_SETTLE, _SOFT_START = 0.175, 0.005  # seconds of the filter of a control pin, and of a regulator


class ButterStickPlatform(butterstick.ButterStickPlatform):
    """The pins of the PHY at the voltage of `Supply`, and three of the LEDs, in green."""

    resources = [
        *(each for each in butterstick.ButterStickPlatform.resources
          if each.name not in ("usb", "rgb_leds_muxed")),
        ULPIResource(
            0, data="B9 C6 A7 E9 A8 D9 C10 C7", clk="B6", clk_dir="o", dir="A6", nxt="B8",
            stp="C8", rst="C9", rst_invert=True, attrs=Attrs(IO_TYPE="LVCMOS18", SLEWRATE="FAST"),
        ),
        *LEDResources(pins="C13 D12 U2", attrs=Attrs(IO_TYPE="LVCMOS33")),
        Resource("led_green", 0, Pins("U1", dir="o"), Attrs(IO_TYPE="LVCMOS33")),
    ]


class Supply(wiring.Component):
    """Sets the voltage of the banks, then switches their regulators on; and the green of the LEDs.

    A regulator adds a current of its control pin to its feedback, through 68 kOhm from a filter
    with 0.1 uF. The part of the time that the pin is high sets the voltage: 0 gives 3.5 V, which is
    too much for a bank, so the regulators stay off until the filter has settled.

    Parameters
    ----------
    clock : float
        Clock in MHz.

    Attributes
    ----------
    ready : Out(1)
        The banks have their voltage.
    """

    LEVELS = 1024

    def __init__(self, *, clock):
        self.clock = clock
        super().__init__({"ready": wiring.Out(1)})

    @staticmethod
    def level(volts: float) -> int:
        """The cycles of `LEVELS` that a control pin is high for a voltage of its bank."""
        feedback, injected, upper, lower = 0.6, 68e3, 53.6e3, 13e3  # V, and Ohm of three resistors
        control = feedback + injected * (feedback / lower - (volts - feedback) / upper)
        return round(Supply.LEVELS * control / 3.3)

    def elaborate(self, platform):
        m = Module()
        control = platform.request("vccio_ctrl", dir={"pdm": "-", "en": "-"})
        m.submodules.levels = levels = io.Buffer("o", control.pdm)
        m.submodules.enable = enable = io.Buffer("o", control.en)
        m.submodules.green = green = io.Buffer("o", platform.request("led_green", dir="-"))
        periods = self.clock * 1e6 / self.LEVELS
        on, ready = round(_SETTLE * periods), round((_SETTLE + _SOFT_START) * periods)
        step, period, high = Signal(range(self.LEVELS)), Signal(range(ready + 1)), Signal()
        enabled = Signal()
        m.d.sync += [
            step.eq(step + 1), high.eq(step < self.level(_VOLTS)),
            enabled.eq(period >= on), self.ready.eq(period == ready),
        ]
        with m.If((step == self.LEVELS - 1) & (period != ready)):
            m.d.sync += period.eq(period + 1)
        m.d.comb += [levels.o.eq(high.replicate(3)), enable.o.eq(enabled), green.o.eq(1)]
        return m


BOARDS = (
    Board(
        name="butterstick", platform=ButterStickPlatform, config=ECP5_85F, placer="static",
        clock=125, usb=("usb", 0), link="usb", supply=Supply, price="$$", placed=False,
        leds={"alive": ("led", 0), "busy": ("led", 1), "error": ("led", 2)},
        programmers=(("dfu-util", "-d", "1209:5af1", "-a", "0", "-R", "-D"),),
    ),
)
