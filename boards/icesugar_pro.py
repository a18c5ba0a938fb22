"""iCESugar-pro: ECP5-25F, 25 MHz, serial port and JTAG on the DAPLink of its carrier."""

import dataclasses

from amaranth_boards.icesugar_pro import ICESugarProPlatform

from weft.boards.board import Board
from weft.boards.designs import ECP5_25F, NETWORKS_SDRAM_25F
from weft.boards.memory import Sdram
from weft.sdram import SDRAM_CHIPS

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="icesugar-pro", platform=ICESugarProPlatform, config=ECP5_25F, placer="static",
        clock=125, baud=1_000_000, bridge="DAPLink", price="$",
        leds={"alive": ("rgb_led", 0, "g"), "busy": ("rgb_led", 0, "b"),
              "error": ("rgb_led", 0, "r")},
        networks={"networks-sdram": dataclasses.replace(NETWORKS_SDRAM_25F, baud=1_000_000)},
        sdram=Sdram(chip=SDRAM_CHIPS["IS42S16160G-7"]),
        programmers=(("icesprog",), ("openFPGALoader", "-c", "cmsisdap")),
    ),
)
