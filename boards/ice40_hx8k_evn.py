"""Lattice's iCE40-HX8K breakout board: 12 MHz, serial port and flash on an FT2232H."""

from amaranth_boards.ice40_hx8k_b_evn import ICE40HX8KBEVNPlatform

from weft.boards.board import Board
from weft.boards.designs import ICE40_HX8K, NETWORKS_HX8K

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="ice40-hx8k-evn", platform=ICE40HX8KBEVNPlatform,
        config=ICE40_HX8K, networks={"networks": NETWORKS_HX8K},
        clock=90, baud=3_000_000, bridge="FT2232H, second port", price="$",
        leds={"alive": ("led", 0), "busy": ("led", 1), "error": ("led", 2)},
        programmers=(("iceprog", "-S"),),  # jumpers set for SRAM
    ),
)
