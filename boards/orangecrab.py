"""OrangeCrab r0.2 with either ECP5: speed grade 8, 48 MHz; its only link is USB at the FPGA.

Its bootloader, a USB device with DFU, runs if the button is held while the board gets power.
"""

from amaranth_boards import orangecrab_r0_2

from weft.boards.board import Board
from weft.boards.designs import ECP5_25F, ECP5_85F

__all__ = ["BOARDS"]


def _orangecrab(size, platform, config):
    return Board(
        name=f"orangecrab-{size}f", platform=platform, config=config, placer="static",
        clock=120, usb=("usb", 0), link="usb", price="$$", placed=False,
        leds={"alive": ("rgb_led", 0, "g"), "busy": ("rgb_led", 0, "b"),
              "error": ("rgb_led", 0, "r")},
        programmers=(
            ("dfu-util", "-d", "1209:5af0", "-a", "0", "-D"),
            ("openFPGALoader", "-b", "orangeCrab"),
        ),
    )


BOARDS = (
    _orangecrab(25, orangecrab_r0_2.OrangeCrabR0_2_25FPlatform, ECP5_25F),
    _orangecrab(85, orangecrab_r0_2.OrangeCrabR0_2_85FPlatform, ECP5_85F),
)
