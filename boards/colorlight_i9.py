"""Colorlight i9 v7.2 on the extension board: ECP5-45F, 25 MHz, all on its DAPLink.

Source: https://github.com/wuxx/Colorlight-FPGA-Projects, colorlight_i9_v7.2.md: the contacts of the
module that carry the i5's serial port lead to the same pins.
"""

from amaranth.build import Attrs, Clock, Pins, PinsN, Resource
from amaranth.vendor import LatticeECP5Platform
from amaranth_boards.resources import UARTResource

from weft.boards.board import Board
from weft.boards.designs import ECP5_45F

__all__ = ["BOARDS", "ColorlightI9Platform"]


class ColorlightI9Platform(LatticeECP5Platform):
    """The module, and the DAPLink's serial port on the extension board."""

    device = "LFE5U-45F"
    package = "BG381"
    speed = "6"
    default_clk = "clk25"
    resources = [
        Resource("clk25", 0, Pins("P3", dir="i"), Clock(25e6), Attrs(IO_TYPE="LVCMOS33")),
        Resource("led", 0, PinsN("L2", dir="o"), Attrs(IO_TYPE="LVCMOS33")),
        UARTResource(0, rx="H18", tx="J17", attrs=Attrs(IO_TYPE="LVCMOS33")),
    ]
    connectors = []


BOARDS = (
    Board(
        name="colorlight-i9", platform=ColorlightI9Platform, config=ECP5_45F,
        clock=125, baud=1_000_000, bridge="DAPLink", leds={"alive": ("led", 0)},
        programmers=(("openFPGALoader", "-b", "colorlight-i9"), ("ecpdap", "program")),
    ),
)
