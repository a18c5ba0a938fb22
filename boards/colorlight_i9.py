"""Colorlight i9 v7.2 on the extension board: ECP5-45F, 25 MHz; the board's DAPLink has the
serial port and JTAG.

Source: https://github.com/wuxx/Colorlight-FPGA-Projects, colorlight_i9_v7.2.md: the contacts of the
module that the i5 uses for its serial port connect to the same pins of the FPGA here.
"""

from amaranth.build import Attrs, PinsN, Resource

from weft.boards.board import Board
from weft.boards.colorlight_i5 import ColorlightI5Platform
from weft.boards.designs import ECP5_45F

__all__ = ["BOARDS", "ColorlightI9Platform"]


class ColorlightI9Platform(ColorlightI5Platform):
    """The i5 with another FPGA and another LED pin."""

    device = "LFE5U-45F"
    resources = [
        *(resource for resource in ColorlightI5Platform.resources if resource.name != "led"),
        Resource("led", 0, PinsN("L2", dir="o"), Attrs(IO_TYPE="LVCMOS33")),
    ]


BOARDS = (
    Board(
        name="colorlight-i9", platform=ColorlightI9Platform, config=ECP5_45F,
        placer="static",  # shorter wires: the core needs most of the FPGA
        clock=125, baud=1_000_000, bridge="DAPLink", price="$",
        leds={"alive": ("led", 0)},
        programmers=(("openFPGALoader", "-b", "colorlight-i9"), ("ecpdap", "program")),
    ),
)
