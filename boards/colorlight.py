"""Colorlight i5 v7.0 and i9 v7.2 on the extension board: ECP5-25F and 45F, 25 MHz; the board's
DAPLink has the serial port and JTAG.

Source: https://github.com/wuxx/Colorlight-FPGA-Projects, for the i9 colorlight_i9_v7.2.md: the
contacts of the module that the i5 uses for its serial port connect to the same pins of the FPGA
there. The serial port of the i5 is as in LiteX-Boards.

The modules have an SDRAM of 32 bits whose DQM is wired to ground, so each write changes whole
words. The controller masks bytes with DQM: ``docs/sdram.md`` tells what it would need here.
"""

from amaranth.build import Attrs, Clock, Pins, PinsN, Resource
from amaranth.vendor import LatticeECP5Platform
from amaranth_boards.resources import UARTResource

from weft.boards.board import Board
from weft.boards.designs import ECP5_25F, ECP5_45F

__all__ = ["BOARDS", "ColorlightI5Platform", "ColorlightI9Platform"]


class ColorlightI5Platform(LatticeECP5Platform):
    """The module, and the DAPLink's serial port on the extension board."""

    device = "LFE5U-25F"
    package = "BG381"
    speed = "6"
    default_clk = "clk25"
    resources = [
        Resource("clk25", 0, Pins("P3", dir="i"), Clock(25e6), Attrs(IO_TYPE="LVCMOS33")),
        Resource("led", 0, PinsN("U16", dir="o"), Attrs(IO_TYPE="LVCMOS33")),
        UARTResource(0, rx="H18", tx="J17", attrs=Attrs(IO_TYPE="LVCMOS33")),
    ]
    connectors = []


class ColorlightI9Platform(ColorlightI5Platform):
    """The i5 with another FPGA and another LED pin."""

    device = "LFE5U-45F"
    resources = [
        *(resource for resource in ColorlightI5Platform.resources if resource.name != "led"),
        Resource("led", 0, PinsN("L2", dir="o"), Attrs(IO_TYPE="LVCMOS33")),
    ]


BOARDS = (
    Board(
        name="colorlight-i5", platform=ColorlightI5Platform, config=ECP5_25F, placer="static",
        clock=125, baud=1_000_000, bridge="DAPLink", price="$", leds={"alive": ("led", 0)},
        programmers=(("openFPGALoader", "-b", "colorlight-i5"), ("ecpdap", "program")),
    ),
    Board(
        name="colorlight-i9", platform=ColorlightI9Platform, config=ECP5_45F,
        placer="static",  # shorter wires: the core needs most of the FPGA
        clock=125, baud=1_000_000, bridge="DAPLink", price="$",
        leds={"alive": ("led", 0)},
        programmers=(("openFPGALoader", "-b", "colorlight-i9"), ("ecpdap", "program")),
    ),
)
