"""The building blocks of the Gowin FPGAs: SDPB block RAM, and multipliers in logic."""

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Signal
from amaranth.utils import ceil_log2

from weft.hw.arith.multiplier import HalvedMultiplier
from weft.hw.fabrics.fabric import Fabric

__all__ = ["GowinFabric"]

ADDRESS_BITS = 14  # of a port of a block RAM; the address counts bits
# Port widths of a block RAM: half the width, twice the words.
WIDTHS = (36, 18, 9, 4, 2, 1)


class GowinFabric(Fabric):
    """Primitives of the Gowin FPGAs.

    A block RAM has 512 words of 36 bits, 1024 of 18 bits and so on. A bank uses the widest shape
    that is deep enough, and puts blocks side by side. So only wires follow the output registers. A
    bank that is read in parts, or written byte by byte, is left to the tool, as is one that is too
    deep.

    All multipliers outside of the array are in logic: nextpnr times logic, but no DSP block.

    Source: Gowin UG285, Gowin BSRAM and SSRAM User Guide: SDPB and SDPX9B.
    """

    multiplier = HalvedMultiplier
    lut_ram = "distributed"

    def add_blocks(self, m, bank):
        if bank.parts > 1 or bank.bytewise or bank.depth > 1 << ADDRESS_BITS:
            return False
        level = max(0, ceil_log2(bank.depth) - 9)
        for first in range(0, bank.width, WIDTHS[level]):
            m.submodules[f"block_{first}"] = self._block(m, bank, first, level)
        return True

    def _block(self, m, bank, first, level):
        """A block for the bits from ``first`` on: port A writes, port B reads."""
        width = WIDTHS[level]
        bits = slice(first, min(first + width, bank.width))
        kind, size = ("SDPX9B", 36) if width >= 9 else ("SDPB", 32)
        skipped = ADDRESS_BITS - 9 - level  # low address pins, which have the bit of the word
        byte_enables = (1 << width // 9) - 1 if width >= 18 else 0  # at these pins, for a write
        data = bank.write_data[bits]
        word = Signal(size, name=f"word_{first}")
        m.d.comb += bank.read_data[bits].eq(word)
        return Instance(
            kind, p_READ_MODE=Const(1), p_BIT_WIDTH_0=width, p_BIT_WIDTH_1=width,
            p_BLK_SEL_0=Const(0, 3), p_BLK_SEL_1=Const(0, 3), p_RESET_MODE="SYNC",
            i_CLKA=ClockSignal(), i_CEA=bank.write_en, i_RESETA=Const(0), i_BLKSELA=Const(0, 3),
            i_CLKB=ClockSignal(), i_CEB=bank.read_en, i_OCE=bank.read_en, i_RESETB=Const(0),
            i_BLKSELB=Const(0, 3),
            i_ADA=_pins(bank.write_addr, skipped, byte_enables),
            i_ADB=_pins(bank.read_addr, skipped, 0),
            i_DI=Cat(data, Const(0, size - len(data))), o_DO=word,
        )


def _pins(address, skipped, low):
    """The address pins: ``low`` at the ``skipped`` lowest ones, then the address of the word."""
    return Cat(Const(low, skipped), address, Const(0, ADDRESS_BITS - skipped - len(address)))
