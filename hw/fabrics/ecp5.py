"""The building blocks of the ECP5: DP16KD block RAM, MULT18X18D multipliers, carry chains."""

from amaranth.hdl import Const, Signal
from amaranth.utils import ceil_log2

from weft.hw.arith.multiplier import Multiplier
from weft.hw.fabrics.ecp5_primitives import ADD_MASKED, ADDRESS_BITS, chain, dp16kd
from weft.hw.fabrics.fabric import Fabric

__all__ = ["Ecp5Fabric"]

WIDTHS = (36, 18, 9, 4, 2, 1)  # port widths of a DP16KD: half the width, twice the words


class Ecp5Fabric(Fabric):
    """Primitives of the ECP5.

    A DP16KD block has 512 words of 36 bits, 1024 of 18 bits and so on. A bank uses the widest
    shape that is deep enough, and puts blocks side by side. So only wires follow the output
    registers. If a bank is read in parts or written byte by byte, a block holds 32 bits of each
    word. A shape that does not fit the blocks is left to the tool.

    Source: Lattice FPGA-TN-02204, ECP5 and ECP5-5G Memory Usage Guide: DP16KD. The port at which
    each half of a 36-bit word appears: as in Yosys (techlibs/lattice, brams_map_16kd.v).
    """

    multiplier = Multiplier
    lut_ram = "distributed"

    def add_blocks(self, m, bank):
        if bank.parts > 1 or bank.bytewise:
            share = 32 // bank.parts  # bits of each part that a block holds
            fits = bank.depth <= 512 and bank.width % 32 == 0 and share >= 1 + 7 * bank.bytewise
            if fits:
                for n in range(bank.width // 32):
                    m.submodules[f"block_{n}"] = self._mixed_block(bank, n, share)
            return fits
        if bank.depth > 1 << ADDRESS_BITS:
            return False
        level = max(0, ceil_log2(bank.depth) - 9)
        for first in range(0, bank.width, WIDTHS[level]):
            m.submodules[f"block_{first}"] = self._block(bank, first, level)
        return True

    def add_dual_port_blocks(self, m, bank):
        """Blocks in true dual-port mode, in the widest shape that is deep enough.

        Of a word of 18 or 9 bits a block uses 16 or 8, whole bytes with their write enables.
        """
        if bank.depth > 1 << ADDRESS_BITS:
            return False
        level = max(1, ceil_log2(bank.depth) - 9)
        used = WIDTHS[level] // 9 * 8 or WIDTHS[level]
        for first in range(0, bank.width, used):
            m.submodules[f"block_{first}"] = self._dual_port_block(bank, first, level, used)
        return True

    def add_to(self, m, acc, term, begin):
        """In one LUT a bit."""
        bits = [term[min(n, len(term) - 1)] for n in range(len(acc))]
        return chain(m, *((ADD_MASKED, bit, acc[n], begin) for n, bit in enumerate(bits)))

    def _block(self, bank, first, level):
        """A block for the bits from ``first`` on: port A writes, port B reads.

        In the 36-bit shape the data pins of both ports form one word, for writes and for reads.
        """
        width = WIDTHS[level]
        end = min(first + width, bank.width)
        # The low address pins have the bit of the word, or byte write enables.
        skipped = ADDRESS_BITS - 9 - level
        ports = {"i_WEA": bank.write_en, "i_WEB": Const(0)}
        for n in range(36):
            port, pin = "AB"[n // 18], n % 18
            out = port if width == 36 else "BA"[n // 18]
            used = first + n < end
            ports[f"i_DI{port}{pin}"] = bank.write_data[first + n] if used else Const(0)
            ports[f"o_DO{out}{pin}"] = bank.read_data[first + n] if used else Signal(name="open")
        for n in range(ADDRESS_BITS):
            bit = n - skipped
            enable = Const(int(width >= 18 and n < width // 9))
            used = 0 <= bit < len(bank.read_addr)
            ports[f"i_ADA{n}"] = bank.write_addr[bit] if used else enable
            ports[f"i_ADB{n}"] = bank.read_addr[bit] if used else Const(0)
        return dp16kd(ports, width_a=width, width_b=width, read_en=bank.read_en)

    def _dual_port_block(self, bank, first, level, used):
        """A block for ``used`` bits from ``first`` on: port A reads, port B reads or writes."""
        skipped = ADDRESS_BITS - 9 - level
        enables = bank.b_write_en[first // 8 : (first + used + 7) // 8]
        ports = {"i_WEA": Const(0), "i_WEB": enables.any()}
        for n in range(18):
            ports |= {f"i_DI{port}{n}": Const(0) for port in "AB"}
        for n in range(min(used, bank.width - first)):
            pin = n + n // 8
            ports |= {
                f"i_DIB{pin}": bank.b_write_data[first + n],
                f"o_DOA{pin}": bank.a_data[first + n], f"o_DOB{pin}": bank.b_data[first + n],
            }
        for port, addr in (("A", bank.a_addr), ("B", bank.b_addr)):
            for n in range(ADDRESS_BITS):
                bit = n - skipped
                in_range = 0 <= bit < len(addr)
                ports[f"i_AD{port}{n}"] = addr[bit] if in_range else Const(0)
        if used == 16:
            ports |= {f"i_ADB{n}": enable for n, enable in enumerate(enables)}
        return dp16kd(ports, width_a=WIDTHS[level], width_b=WIDTHS[level])

    def _mixed_block(self, bank, block, share):
        """A block that is written 36 bits wide and read in narrower parts.

        It holds ``share`` bits of each part of the word; 9 bits of a block hold 8 bits of data.
        """
        size = bank.width // bank.parts
        part_bits = ceil_log2(bank.parts)
        ports = {"i_WEA": Const(1) if bank.bytewise else bank.write_en, "i_WEB": Const(0)}
        for port in "AB":
            ports |= {f"i_DI{port}{n}": Const(0) for n in range(18)}
            ports |= {f"i_AD{port}{n}": Const(0) for n in range(5)}
        for n in range(32):
            pin, part = n + n // 8, n // share
            bit = part * size + block * share + n % share
            ports[f"i_DI{'AB'[pin // 18]}{pin % 18}"] = bank.write_data[bit]
            if n % 8 == 0:
                ports[f"i_ADA{n // 8}"] = bank.write_en[bit // 8] if bank.bytewise else Const(1)
            if n < share:
                out = "AB"[pin // 18] if share == 32 else "B"
                ports[f"o_DO{out}{pin % 18}"] = bank.read_data[block * share + n]
        for n in range(9):
            used = n < len(bank.write_addr)
            ports[f"i_ADA{5 + n}"] = bank.write_addr[n] if used else Const(0)
            ports[f"i_ADB{5 + n}"] = bank.read_addr[part_bits + n] if used else Const(0)
        for n in range(part_bits):
            ports[f"i_ADB{5 - part_bits + n}"] = bank.read_addr[n]
        read_width = {32: 36, 16: 18, 8: 9}.get(share, share)
        return dp16kd(ports, width_a=36, width_b=read_width, read_en=bank.read_en)
