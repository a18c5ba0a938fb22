"""`Fabric`: the building blocks of an FPGA family; by default plain logic for any tool."""

from amaranth.hdl import Mux

from weft.hw.arith.multiplier import PlainMultiplier

__all__ = ["Fabric"]


class Fabric:
    """Building blocks that any FPGA and any tool accept. A subclass uses primitives of a family.

    A block calls them if it is elaborated with a platform. Without one, as in simulations, it uses
    its own model.

    Attributes
    ----------
    multiplier : class
        Multiplier outside of the array: `weft.hw.arith.multiplier.Multiplier` or a subclass.
    registers_address : bool
        Whether a memory bank registers its read address instead of its read data.
    lut_ram : str or None
        Value of the attribute ``ram_style`` that selects LUT RAM; None if the family has none.
    """

    multiplier = PlainMultiplier
    registers_address = False
    lut_ram = None

    def add_blocks(self, m, bank) -> bool:
        """Add the block RAMs of a `weft.hw.buffers.bank.Bank`; False leaves them to the tool."""
        return False

    def add_dual_port_blocks(self, m, bank) -> bool:
        """As `add_blocks`, for a `weft.hw.buffers.bank.DualPortBank`."""
        return False

    def add_single_port_blocks(self, m, bank) -> bool:
        """As `add_blocks`, for a `weft.hw.buffers.bank.SinglePortBank`."""
        return False

    def add_to(self, m, acc, term, begin):
        """``(0 if begin else acc) + term``."""
        return Mux(begin, 0, acc) + term
