"""Tang Nano 20K and 9K: 27 MHz, serial port and JTAG on a BL616 and a BL702."""

from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.vendor import GowinPlatform
from amaranth_boards.resources import LEDResources, UARTResource
from amaranth_boards.tang_nano_9k import TangNano9kPlatform

from weft.boards.board import Board
from weft.boards.designs import GOWIN_9, GOWIN_18, NETWORKS_GOWIN_18, NETWORKS_SDRAM_GOWIN_18
from weft.boards.memory import Sdram
from weft.sdram import SDRAM_CHIPS

__all__ = ["BOARDS"]

LVCMOS = Attrs(IO_TYPE="LVCMOS33")


class TangNano20kPlatform(GowinPlatform):
    """The pins that Weft uses.

    Source: Sipeed, the page of the board: wiki.sipeed.com/hardware/en/tang/tang-nano-20k.
    """

    part, family, default_clk = "GW2AR-LV18QN88C8/I7", "GW2AR-18C", "clk27"
    resources = [
        Resource("clk27", 0, Pins("4", dir="i"), Clock(27e6), LVCMOS),
        *LEDResources(pins="15 16 17 18 19 20", invert=True, attrs=LVCMOS),
        UARTResource(0, rx="70", tx="69", attrs=LVCMOS),
    ]
    connectors = []

    def iter_port_constraints_bits(self):
        # Not the ports of the SDRAM in the package: nextpnr knows their pads.
        return (pin for pin in super().iter_port_constraints_bits() if pin[1] is not None)


BOARDS = (
    Board(
        name="tang-nano-20k", platform=TangNano20kPlatform, config=GOWIN_18, clock=102,
        baud=1_000_000, bridge="BL616", price="$",
        leds={"alive": ("led", 0), "busy": ("led", 1), "error": ("led", 2)},
        programmers=(("openFPGALoader", "-b", "tangnano20k"),),
        networks={"networks": NETWORKS_GOWIN_18, "networks-sdram": NETWORKS_SDRAM_GOWIN_18},
        sdram=Sdram(chip=SDRAM_CHIPS["EM638325-7"], resource=()),
    ),
    Board(
        name="tang-nano-9k", platform=TangNano9kPlatform, config=GOWIN_9, clock=54,
        baud=1_000_000, bridge="BL702", price="$",
        leds={"alive": ("led", 0), "busy": ("led", 1), "error": ("led", 2)},
        programmers=(("openFPGALoader", "-b", "tangnano9k"),),
    ),
)
