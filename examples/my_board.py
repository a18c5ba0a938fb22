"""A board that Weft does not know: weft build --board examples/my_board.py

An ECP5-25F with a 25 MHz oscillator, a USB serial bridge and two LEDs that light when low. Replace
the pins by yours. Weft uses the resource `uart` and the clock `default_clk`.
"""

from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.vendor import LatticeECP5Platform
from amaranth_boards.resources import LEDResources, UARTResource

from weft.boards.board import Board
from weft.config import Config


class MyPlatform(LatticeECP5Platform):
    """The pins. Instead, you can import a platform of the package amaranth-boards."""

    # BG256 is CABGA256; BG381 is CABGA381.
    device, package, speed = "LFE5U-25F", "BG256", "6"
    default_clk = "osc"
    resources = [
        Resource("osc", 0, Pins("P6", dir="i"), Clock(25e6), Attrs(IO_TYPE="LVCMOS33")),
        UARTResource(0, rx="A9", tx="B9", attrs=Attrs(IO_TYPE="LVCMOS33")),
        *LEDResources(pins="A11 A12", invert=True, attrs=Attrs(IO_TYPE="LVCMOS33")),
    ]
    connectors = []


BOARD = Board(
    name="myboard", platform=MyPlatform, clock=125, baud=1_000_000, bridge="CH340",
    config=Config(target="ecp5", rows=4, cols=4, depth=4, dsp_cols=2, lanes=1, jobs=4),
    leds={"alive": ("led", 0), "error": ("led", 1)},
    programmers=(("openFPGALoader", "-c", "ft2232"),),
)
