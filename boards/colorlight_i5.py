"""Colorlight i5 v7.0 on the extension board: ECP5-25F, 25 MHz; the board's DAPLink has the
serial port and JTAG.

Source: https://github.com/wuxx/Colorlight-FPGA-Projects; the serial port as in LiteX-Boards.
"""

from amaranth.build import Attrs, Clock, Pins, PinsN, Resource
from amaranth.vendor import LatticeECP5Platform
from amaranth_boards.resources import UARTResource

from weft.boards.board import Board
from weft.boards.designs import ECP5_25F

__all__ = ["BOARDS", "ColorlightI5Platform"]


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


BOARDS = (
    Board(
        name="colorlight-i5", platform=ColorlightI5Platform, config=ECP5_25F, placer="static",
        clock=125, baud=1_000_000, bridge="DAPLink", price="$", leds={"alive": ("led", 0)},
        programmers=(("openFPGALoader", "-b", "colorlight-i5"), ("ecpdap", "program")),
    ),
)
