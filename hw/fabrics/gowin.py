"""The building blocks of the Gowin FPGAs: SDPX9B and DPB block RAM, and multipliers in logic."""

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
    that is deep enough, and puts blocks side by side. If a bank is written byte by byte, a block
    has bits of one byte, because Yosys and the open tools handle byte enables wrongly. If it is
    read in parts, a multiplexer follows the output registers; otherwise only wires do. A bank that
    is too deep is left to the tool.

    Blocks of 36 bits use their output registers. In the other widths, these registers do not work
    in the dies with a C in their name, so flip-flops take their place.

    All multipliers outside of the array are in logic: nextpnr times logic, but no DSP block.

    Source: Gowin UG285, Gowin BSRAM and SSRAM User Guide: SDPB, SDPX9B and DPB. The registers that
    do not work: Project Apicula, doc/bsram-fix.md.
    """

    multiplier = HalvedMultiplier
    lut_ram = "distributed"

    def add_blocks(self, m, bank):
        if bank.depth > 1 << ADDRESS_BITS:
            return False
        level = max(2 * bank.bytewise, ceil_log2(bank.depth) - 9)
        step = min(8, WIDTHS[level]) if bank.bytewise else WIDTHS[level]
        word = Signal(bank.width, name="words")
        for first in range(0, bank.width, step):
            bits = slice(first, min(first + step, bank.width))
            m.submodules[f"block_{first}"] = self._block(m, bank, word, bits, level)
        m.d.comb += bank.read_data.eq(self._part(m, bank, word))
        return True

    def add_dual_port_blocks(self, m, bank):
        """Blocks in true dual-port mode, with bits of one byte each: port A reads, B does both."""
        if bank.depth > 1 << ADDRESS_BITS:
            return False
        level = max(2, ceil_log2(bank.depth) - 9)
        step = min(8, WIDTHS[level])
        for first in range(0, bank.width, step):
            bits = slice(first, min(first + step, bank.width))
            m.submodules[f"block_{first}"] = self._dual_port_block(m, bank, bits, level, step)
        return True

    def _part(self, m, bank, word):
        """The part of ``word`` that the read address selected when the read began."""
        if bank.parts == 1:
            return word
        part = bank.read_addr[: ceil_log2(bank.parts)]
        for n in range(bank.LATENCY):
            register = Signal.like(part, name=f"part_{n}", reset_less=True)
            with m.If(bank.read_en):
                m.d.sync += register.eq(part)
            part = register
        return word.word_select(part, bank.width // bank.parts)

    def _block(self, m, bank, word, bits, level):
        """A block for some ``bits`` of the ``word`` that is read: port A writes, port B reads."""
        width = WIDTHS[level]
        kind, size = ("SDPX9B", 36) if width >= 9 else ("SDPB", 32)
        skipped = ADDRESS_BITS - 9 - level  # low address pins, which have the bit of the word
        byte_enables = (1 << width // 9) - 1 if width >= 18 else 0  # at these pins, for a write
        data = bank.write_data[bits]
        write_en = bank.write_en[bits.start // 8] if bank.bytewise else bank.write_en
        out = Signal(size, name=f"out_{bits.start}")
        registered = width == size == 36
        m.d.comb += word[bits].eq(
            out if registered else _register(m, out[: len(data)], bank.read_en)
        )
        return Instance(
            kind, p_READ_MODE=Const(int(registered)), p_BIT_WIDTH_0=width, p_BIT_WIDTH_1=width,
            p_BLK_SEL_0=Const(0, 3), p_BLK_SEL_1=Const(0, 3), p_RESET_MODE="SYNC",
            i_CLKA=ClockSignal(), i_CEA=write_en, i_RESETA=Const(0), i_BLKSELA=Const(0, 3),
            i_CLKB=ClockSignal(), i_CEB=bank.read_en, i_OCE=bank.read_en, i_RESETB=Const(0),
            i_BLKSELB=Const(0, 3),
            i_ADA=_pins(bank.write_addr, skipped, byte_enables),
            i_ADB=_pins(bank.read_addr[ceil_log2(bank.parts):], skipped, 0),
            i_DI=Cat(data, Const(0, size - len(data))), o_DO=out,
        )


    def _dual_port_block(self, m, bank, bits, level, width):
        """A block for some ``bits`` of the words of both ports."""
        skipped = ADDRESS_BITS - 9 - level  # low address pins, which have the bit of the word
        data = bank.b_write_data[bits]
        ports = {
            "A": (bank.a_addr, bank.a_data, Const(0), Const(0, 16)),
            "B": (
                bank.b_addr, bank.b_data, bank.b_write_en[bits.start // 8],
                Cat(data, Const(0, 16 - len(data))),
            ),
        }
        pins = {}
        for port, (address, word, write_en, write_data) in ports.items():
            out = Signal(16, name=f"out_{port.lower()}_{bits.start}")
            m.d.comb += word[bits].eq(_register(m, out[: len(data)], Const(1)))
            pins |= {
                f"i_CLK{port}": ClockSignal(), f"i_CE{port}": Const(1), f"i_OCE{port}": Const(1),
                f"i_RESET{port}": Const(0), f"i_BLKSEL{port}": Const(0, 3),
                f"i_WRE{port}": write_en, f"i_AD{port}": _pins(address, skipped, 0),
                f"i_DI{port}": write_data, f"o_DO{port}": out,
            }
        return Instance(
            "DPB", p_READ_MODE0=Const(0), p_READ_MODE1=Const(0), p_WRITE_MODE0=Const(0, 2),
            p_WRITE_MODE1=Const(0, 2), p_BIT_WIDTH_0=width, p_BIT_WIDTH_1=width,
            p_BLK_SEL_0=Const(0, 3), p_BLK_SEL_1=Const(0, 3), p_RESET_MODE="SYNC", **pins,
        )


def _register(m, value, en):
    """``value``, a cycle of ``en`` later."""
    register = Signal(len(value), reset_less=True)
    with m.If(en):
        m.d.sync += register.eq(value)
    return register


def _pins(address, skipped, low):
    """The address pins: ``low`` at the ``skipped`` lowest ones, then the address of the word."""
    return Cat(Const(low, skipped), address, Const(0, ADDRESS_BITS - skipped - len(address)))
