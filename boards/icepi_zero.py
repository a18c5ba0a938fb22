"""Icepi Zero: ECP5-25F, 50 MHz, serial port and JTAG on an FT231X."""

from amaranth_boards.icepi_zero import IcepiZero1_3Platform

from weft.boards.board import Board
from weft.boards.designs import ECP5_25F, NETWORKS_SDRAM_25F
from weft.boards.memory import Sdram
from weft.sdram import SDRAM_CHIPS

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="icepi-zero", platform=IcepiZero1_3Platform, config=ECP5_25F, placer="static",
        clock=125, baud=3_000_000, bridge="FT231X", usb=("usb", 0), price="$",
        leds={"alive": ("led", 0), "busy": ("led", 1), "error": ("led", 2)},
        networks={"networks-sdram": NETWORKS_SDRAM_25F},
        sdram=Sdram(chip=SDRAM_CHIPS["W9825G6KH-6"]),
        programmers=(("openFPGALoader", "-b", "icepi-zero"),),
    ),
)
