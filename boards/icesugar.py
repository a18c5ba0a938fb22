"""iCESugar: iCE40UP5K, 12 MHz, serial port and flash on an STM32 (iCELink)."""

from dataclasses import replace

from amaranth_boards.icesugar import ICESugarPlatform

from weft.boards.board import Board
from weft.boards.designs import ICE40_UP5K, NETWORKS_UP5K

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="icesugar", platform=ICESugarPlatform, config=ICE40_UP5K,
        clock=48, baud=1_000_000, bridge="iCELink", price="$", at_pad=True,
        networks={"networks": replace(NETWORKS_UP5K, baud=1_000_000)},
        leds={"alive": ("led_g", 0), "busy": ("led_b", 0), "error": ("led_r", 0)},
        programmers=(("icesprog",),),
    ),
)
