"""ECPIX-5 with either ECP5: speed grade 8, 100 MHz, serial port and JTAG on an FT2232H."""

from dataclasses import replace

from amaranth_boards import ecpix5

from weft.boards.board import Board
from weft.boards.designs import BATCH1_85F, ECP5_45F, ECP5_85F, NETWORKS_85F

__all__ = ["BOARDS"]


# The netlists of the ULX3S-85F, which are faster on speed grade 8.
_NETWORKS = {"networks": replace(NETWORKS_85F, clock=140), "batch1": replace(BATCH1_85F, clock=130)}


def _ecpix5(size, platform, config, networks):
    return Board(
        name=f"ecpix5-{size}f", platform=platform, config=config, placer="static",
        clock=125, baud=3_000_000, bridge="FT2232H, second port", usb=("ulpi", 0), price="$$",
        leds={"alive": ("rgb_led", 0, "g"), "busy": ("rgb_led", 1, "b"),
              "error": ("rgb_led", 2, "r")},
        programmers=(("openFPGALoader", "-b", "ecpix5"),), networks=networks,
    )


BOARDS = (
    _ecpix5(45, ecpix5.ECPIX545Platform, ECP5_45F, {}),
    _ecpix5(85, ecpix5.ECPIX585Platform, ECP5_85F, _NETWORKS),
)
