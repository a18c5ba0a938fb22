"""The building blocks of the iCE40: the tool infers its block RAM; the UltraPlus has SPRAM."""

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Signal

from weft.hw.fabrics.fabric import Fabric

__all__ = ["Ice40Fabric", "Ice40UpFabric"]

SPRAM_WORDS, SPRAM_BITS = 1 << 14, 16


class Ice40Fabric(Fabric):
    """A block RAM of the iCE40 has no output register: a bank registers the address instead."""

    registers_address = True


class Ice40UpFabric(Ice40Fabric):
    """The iCE40 UltraPlus, whose SPRAM blocks have 16,384 words of 16 bits, and one port.

    A bank puts them side by side. A bank with more words is left to the tool.

    Source: Lattice FPGA-TN-02022, iCE40 SPRAM Usage Guide.
    """

    def add_single_port_blocks(self, m, bank):
        if bank.depth > SPRAM_WORDS:
            return False
        for first in range(0, bank.width, SPRAM_BITS):
            bits = slice(first, min(first + SPRAM_BITS, bank.width))
            enables = bank.write_en[first // 8 : (bits.stop + 7) // 8]
            read = Signal(SPRAM_BITS, name=f"read_{first}")
            m.d.comb += bank.read_data[bits].eq(read)
            m.submodules[f"block_{first}"] = Instance(
                "SB_SPRAM256KA",
                i_ADDRESS=_padded(bank.addr, 14),
                i_DATAIN=_padded(bank.write_data[bits], SPRAM_BITS),
                # A bit enables four bits of the word.
                i_MASKWREN=_padded(Cat(bit.replicate(2) for bit in enables), 4),
                i_WREN=enables.any(), o_DATAOUT=read, i_CLOCK=ClockSignal(),
                i_CHIPSELECT=Const(1), i_STANDBY=Const(0), i_SLEEP=Const(0), i_POWEROFF=Const(1),
            )
        return True


def _padded(value, width):
    return Cat(value, Const(0, width - len(value)))
