"""Colorlight i5 v7.0 and i9 v7.2 on the extension board: ECP5-25F and 45F, 25 MHz; the board's
DAPLink has the serial port and JTAG.

Source: https://github.com/wuxx/Colorlight-FPGA-Projects, for the i9 colorlight_i9_v7.2.md: the
contacts of the module that the i5 uses for its serial port connect to the same pins of the FPGA
there. The serial port of the i5 is as in LiteX-Boards.

The SDRAM of the modules, by the same source: 32 bits; CKE is high, CS and DQM are low. An i5 v7.0
has an EM638325, an i9 v7.2 an M12L64322A, which has the same size and shorter times.
"""

from dataclasses import replace

from amaranth.build import Attrs, Clock, Pins, PinsN, Resource
from amaranth.vendor import LatticeECP5Platform
from amaranth_boards.resources import SDRAMResource, UARTResource

from weft.boards.board import Board
from weft.boards.designs import ECP5_25F, ECP5_45F, NETWORKS_SDRAM_25F, NETWORKS_SDRAM_45F
from weft.boards.memory import Sdram
from weft.sdram import SDRAM_CHIPS

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
        SDRAMResource(
            0, clk="B9", ras_n="B10", cas_n="A9", we_n="A10", ba="B11 C8",
            a="B13 C14 A16 A17 B16 B15 A14 A13 A12 A11 B12",
            dq="B6 A5 A6 A7 C7 B8 B5 A8 D8 D7 E8 D6 C6 D5 E7 C5 C10 D9 E11 D11 C11 D12 E9 C12 E14"
            " C15 E13 D15 E12 B17 D14 D13",
            attrs=Attrs(IO_TYPE="LVCMOS33", SLEWRATE="FAST"),
        ),
    ]
    connectors = []


class ColorlightI9Platform(ColorlightI5Platform):
    """The i5 with another FPGA and another LED pin."""

    device = "LFE5U-45F"
    resources = [
        *(resource for resource in ColorlightI5Platform.resources if resource.name != "led"),
        Resource("led", 0, PinsN("L2", dir="o"), Attrs(IO_TYPE="LVCMOS33")),
    ]


_SDRAM = Sdram(
    chip=replace(SDRAM_CHIPS["EM638325-7"], masks=False), tied=("clk_en", "cs", "dqm"),
)

BOARDS = (
    Board(
        name="colorlight-i5", platform=ColorlightI5Platform, config=ECP5_25F, placer="static",
        clock=125, baud=1_000_000, bridge="DAPLink", price="$", leds={"alive": ("led", 0)},
        networks={"networks-sdram": replace(NETWORKS_SDRAM_25F, baud=1_000_000)}, sdram=_SDRAM,
        programmers=(("openFPGALoader", "-b", "colorlight-i5"), ("ecpdap", "program")),
    ),
    Board(
        name="colorlight-i9", platform=ColorlightI9Platform, config=ECP5_45F,
        placer="static",  # shorter wires: the core needs most of the FPGA
        clock=125, baud=1_000_000, bridge="DAPLink", price="$",
        leds={"alive": ("led", 0)}, networks={"networks-sdram": NETWORKS_SDRAM_45F}, sdram=_SDRAM,
        programmers=(("openFPGALoader", "-b", "colorlight-i9"), ("ecpdap", "program")),
    ),
)
