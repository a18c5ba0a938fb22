"""The building blocks of the iCE40: the tool infers its block RAM; the UltraPlus has SPRAM."""

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Signal

from weft.hw.fabrics.fabric import Fabric

__all__ = ["Ice40Fabric", "Ice40UpFabric"]

SPRAM_ADDRESS, SPRAM_BITS = 14, 16
SPRAM_WORDS = 1 << SPRAM_ADDRESS


class Ice40Fabric(Fabric):
    """A block RAM of the iCE40 has no output register: a bank registers the address instead."""

    registers_address = True


class Ice40UpFabric(Ice40Fabric):
    """The iCE40 UltraPlus, whose SPRAM blocks have 16,384 words of 16 bits, and one port.

    A bank puts them side by side. A deeper bank has several of these rows: the high bits of the
    address choose one.

    Source: Lattice FPGA-TN-02022, iCE40 SPRAM Usage Guide.
    """

    def add_single_port_blocks(self, m, bank):
        rows = -(-bank.depth // SPRAM_WORDS)
        row, r_row = Signal(range(rows)), Signal(range(rows), reset_less=True)
        m.d.comb += row.eq(bank.addr >> SPRAM_ADDRESS)
        m.d.sync += r_row.eq(row)
        words = [Signal(bank.width, name=f"word_{n}") for n in range(rows)]
        for n, word in enumerate(words):
            for first in range(0, bank.width, SPRAM_BITS):
                bits = slice(first, min(first + SPRAM_BITS, bank.width))
                m.submodules[f"block_{n}_{first}"] = self._block(
                    m, bank, bits, row == n if rows > 1 else Const(1), word
                )
        m.d.comb += bank.read_data.eq(Cat(words).word_select(r_row, bank.width))
        return True

    def _block(self, m, bank, bits, select, word):
        """The block that has some ``bits`` of a row's words; it drives them in ``word``."""
        enables = bank.write_en[bits.start // 8 : (bits.stop + 7) // 8]
        read = Signal(SPRAM_BITS, name=f"read_{bits.start}")
        m.d.comb += word[bits].eq(read)
        return Instance(
            "SB_SPRAM256KA",
            i_ADDRESS=_padded(bank.addr[:SPRAM_ADDRESS], SPRAM_ADDRESS),
            i_DATAIN=_padded(bank.write_data[bits], SPRAM_BITS),
            # A bit enables four bits of the word.
            i_MASKWREN=_padded(Cat(bit.replicate(2) for bit in enables), 4),
            i_WREN=enables.any(), i_CHIPSELECT=select, o_DATAOUT=read, i_CLOCK=ClockSignal(),
            i_STANDBY=Const(0), i_SLEEP=Const(0), i_POWEROFF=Const(1),
        )


def _padded(value, width):
    return Cat(value, Const(0, width - len(value)))
