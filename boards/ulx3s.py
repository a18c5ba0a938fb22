"""ULX3S with any of its four ECP5: 25 MHz, serial port and JTAG on an FT231X."""

from amaranth_boards import ulx3s

from weft.boards.board import Board
from weft.boards.designs import (
    BATCH1_85F,
    ECP5_25F,
    ECP5_45F,
    ECP5_85F,
    NETWORKS_25F,
    NETWORKS_85F,
    NETWORKS_FAST_85F,
    NETWORKS_ONNX_85F,
)

__all__ = ["BOARDS"]


def _ulx3s(size, platform, config, networks):
    return Board(
        name=f"ulx3s-{size}f", platform=platform, config=config, placer="static",
        clock=125, baud=3_000_000, bridge="FT231X", usb=("usb", 0), price="$$", networks=networks,
        leds={"alive": ("led", 0), "busy": ("led", 1), "error": ("led", 2)},
        programmers=(("openFPGALoader", "-b", "ulx3s"), ("fujprog",)),
    )


BOARDS = (
    _ulx3s(12, ulx3s.ULX3S_12F_Platform, ECP5_25F, {"networks": NETWORKS_25F}),  # the die of a 25F
    _ulx3s(25, ulx3s.ULX3S_25F_Platform, ECP5_25F, {"networks": NETWORKS_25F}),
    _ulx3s(45, ulx3s.ULX3S_45F_Platform, ECP5_45F, {}),
    _ulx3s(85, ulx3s.ULX3S_85F_Platform, ECP5_85F, {
        "networks": NETWORKS_85F, "networks-fast": NETWORKS_FAST_85F, "batch1": BATCH1_85F,
        "networks-onnx": NETWORKS_ONNX_85F,
    }),
)
