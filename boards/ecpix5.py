"""ECPIX-5 with either ECP5: speed grade 8, 100 MHz, serial port and JTAG on an FT2232H."""

from amaranth_boards import ecpix5

from weft.boards.board import Board
from weft.boards.designs import ECP5_45F, ECP5_85F

__all__ = ["BOARDS"]


def _ecpix5(size, platform, config):
    return Board(
        name=f"ecpix5-{size}f", platform=platform, config=config, placer="static",
        clock=125, baud=3_000_000, bridge="FT2232H, second port", usb=("ulpi", 0), price="$$",
        leds={"alive": ("rgb_led", 0, "g"), "busy": ("rgb_led", 1, "b"),
              "error": ("rgb_led", 2, "r")},
        programmers=(("openFPGALoader", "-b", "ecpix5"),),
    )


BOARDS = (
    _ecpix5(45, ecpix5.ECPIX545Platform, ECP5_45F),
    _ecpix5(85, ecpix5.ECPIX585Platform, ECP5_85F),
)
