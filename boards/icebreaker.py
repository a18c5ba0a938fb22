"""iCEBreaker: iCE40UP5K, 12 MHz, serial port and flash on an FT2232H."""

from amaranth_boards.icebreaker import ICEBreakerPlatform

from weft.boards.board import Board
from weft.boards.designs import ICE40_UP5K, LANGUAGE_UP5K, NETWORKS_UP5K

__all__ = ["BOARDS"]

BOARDS = (
    Board(
        name="icebreaker", platform=ICEBreakerPlatform, config=ICE40_UP5K,
        clock=48, baud=3_000_000, bridge="FT2232H, second port", price="$", at_pad=True,
        networks={"networks": NETWORKS_UP5K}, languages={"language": LANGUAGE_UP5K},
        leds={"alive": ("led_g", 0), "error": ("led_r", 0)},
        programmers=(("iceprog",), ("openFPGALoader", "-b", "ice40_generic")),
    ),
)
