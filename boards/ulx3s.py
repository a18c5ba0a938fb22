"""ULX3S with any of its four ECP5: 25 MHz, serial port and JTAG on an FT231X."""

from dataclasses import replace

from amaranth_boards import ulx3s

from weft.boards.board import Board
from weft.boards.designs import (
    BATCH1_85F,
    ECP5_25F,
    ECP5_45F,
    ECP5_85F,
    LANGUAGE_85F,
    LANGUAGE_SDRAM_85F,
    NETWORKS_25F,
    NETWORKS_85F,
    NETWORKS_FAST_85F,
    NETWORKS_ONNX_85F,
    NETWORKS_SDRAM_25F,
    NETWORKS_SDRAM_85F,
)
from weft.boards.memory import Sdram
from weft.sdram import SDRAM_CHIPS

__all__ = ["BOARDS"]

# Boards have this chip, an MT48LC16M16 with shorter times, or an AS4C32M16 with twice the columns
# and a longer tRCD and tRP.
_SDRAM = Sdram(chip=replace(SDRAM_CHIPS["IS42S16160G-7"], rcd=21, rp=21))


def _ulx3s(size, platform, config, networks, languages=None):
    return Board(
        name=f"ulx3s-{size}f", platform=platform, config=config, placer="static",
        clock=125, baud=3_000_000, bridge="FT231X", usb=("usb", 0), price="$$", networks=networks,
        languages=languages or {},
        leds={"alive": ("led", 0), "busy": ("led", 1), "error": ("led", 2)},
        programmers=(("openFPGALoader", "-b", "ulx3s"), ("fujprog",)), sdram=_SDRAM,
    )


_OF_25F = {"networks": NETWORKS_25F, "networks-sdram": NETWORKS_SDRAM_25F}

BOARDS = (
    _ulx3s(12, ulx3s.ULX3S_12F_Platform, ECP5_25F, _OF_25F),  # the die of a 25F
    _ulx3s(25, ulx3s.ULX3S_25F_Platform, ECP5_25F, _OF_25F),
    _ulx3s(45, ulx3s.ULX3S_45F_Platform, ECP5_45F, {}),
    _ulx3s(85, ulx3s.ULX3S_85F_Platform, ECP5_85F, {
        "networks": NETWORKS_85F, "networks-fast": NETWORKS_FAST_85F,
        "networks-sdram": NETWORKS_SDRAM_85F,
        "batch1": BATCH1_85F, "networks-onnx": NETWORKS_ONNX_85F,
    }, {"language": LANGUAGE_85F, "language-sdram": LANGUAGE_SDRAM_85F}),
)
