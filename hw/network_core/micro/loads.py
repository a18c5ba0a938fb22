"""The load unit: copies words from the memory to a buffer, a vector every two cycles."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from weft.network_core.descriptors import LoadTarget

__all__ = ["LINE_GROUPS", "LoadUnit", "LoadWrite", "WeightBuffer"]


class WeightBuffer(wiring.Component):
    """Words of ``cols`` vectors of 4 bytes, in halves of two bytes of each column.

    Parameters
    ----------
    cols, words : int

    Attributes
    ----------
    enable : In, 1 bit for each column
    write_address : In
        ``Cat(half, word)``.
    write_data : In, 16 bits
        For all columns that are enabled.
    diagonal : In, 1 bit
        All columns are written: column n gets byte n of the word, in its place, and 0 elsewhere.
    read_address : In
    read_data : Out, 16 bits for each column
        A cycle later.
    """

    def __init__(self, *, cols, words):
        self.cols, self.words = cols, words
        bits = (words - 1).bit_length() + 1
        super().__init__({
            "enable": In(cols), "write_address": In(bits), "write_data": In(16),
            "diagonal": In(1), "read_address": In(bits),
            "read_data": Out(data.ArrayLayout(16, cols)),
        })

    def elaborate(self, platform):
        m = Module()
        half = self.write_address[0]
        for column in range(self.cols):
            m.submodules[f"column_{column}"] = memory = Memory(
                shape=16, depth=2 * self.words, init=[],
                attrs={"ram_style": "block", "no_rw_check": 1},
            )
            write, read = memory.write_port(), memory.read_port()
            mine = half == column // 2
            kept = [~self.diagonal | (mine if byte == column % 2 else 0) for byte in range(2)]
            m.d.comb += [
                write.en.eq(self.enable[column]), write.addr.eq(self.write_address),
                write.data.eq(self.write_data & Cat(bit.replicate(8) for bit in kept)),
                read.addr.eq(self.read_address), self.read_data[column].eq(read.data),
            ]
        return m


LINE_GROUPS = 3  # vectors of a parameter line: bias, multiplier, shift


class LoadWrite(data.StructLayout):
    """A write of a buffer.

    ============ ==============================================================================
    ``valid``    a write, of the buffer with this bit (`weft.network_core.descriptors.LoadTarget`)
    ``word``     of the buffer
    ``group``    the vector of the word
    ``half``     the half of the vector that B takes; the other buffers take a vector with half 0
    ``diagonal`` of B
    ``data``     the vector, with half 0
    ``part``     the half for B
    ============ ==============================================================================
    """

    def __init__(self):
        super().__init__({
            "valid": len(LoadTarget), "word": 16, "group": 2, "half": 1, "diagonal": 1, "data": 32,
            "part": 16,
        })


class LoadUnit(wiring.Component):
    """Executes a `weft.network_core.descriptors.ListLoad` whose fields are right.

    Parameters
    ----------
    cols : int

    Attributes
    ----------
    value : In, 16 bits
        Of the fields: taken with ``set_flags`` (bits 31..0 of word 0), ``set_target`` (the higher
        half of word 1), ``set_word`` (of the buffer) and ``set_words`` (to load).
    set_flags, set_target, set_word, set_words : In, 1 bit each
    load : In, 1 bit
        Executes the load, until ``done``.
    done : Out, 1 bit
    read : Out, 1 bit
        Reads the next vector, until ``read_ready``; ``data`` has it in the cycle after that.
    read_ready : In, 1 bit
    data : In, 32 bits
    write : Out, `LoadWrite`
    """

    def __init__(self, *, cols):
        self.cols = cols
        super().__init__({
            "value": In(16), "set_flags": In(1), "set_target": In(1), "set_word": In(1),
            "set_words": In(1), "load": In(1), "done": Out(1, init=1), "read": Out(1),
            "read_ready": In(1), "data": In(32), "write": Out(LoadWrite()),
        })

    def elaborate(self, platform):
        m = Module()
        diagonal, fill, target = Signal(), Signal(), Signal(2)
        fill_value, word, words_left, group = Signal(8), Signal(16), Signal(16), Signal(2)
        for port, fields in (
            (self.set_flags, [diagonal.eq(self.value[8]), fill.eq(self.value[9])]),
            (self.set_target, [target.eq(self.value), fill_value.eq(self.value[8:])]),
            (self.set_word, [word.eq(self.value)]),
            (self.set_words, [words_left.eq(self.value), group.eq(0), self.done.eq(0)]),
        ):
            with m.If(port):
                m.d.sync += fields
        single, last_group, last_word = Signal(), Signal(), Signal()
        is_b, write = target == LoadTarget.B, self.write
        groups = Mux(is_b, self.cols, LINE_GROUPS)
        busy, half, final, more, high = Signal(), Signal(), Signal(), Signal(), Signal(16)
        m.d.comb += [
            single.eq(Mux(is_b, diagonal, target == LoadTarget.ADD_TABLE)),
            write.valid.eq(Mux(busy, 1 << target, 0)),
            write.word.eq(word), write.group.eq(group), write.half.eq(half),
            write.diagonal.eq(diagonal & is_b),
            write.data.eq(Mux(fill, fill_value.replicate(4), self.data)),
            write.part.eq(Mux(half, high, write.data[:16])),
            # The next vector is read while the buffer takes the second half of this one.
            more.eq(self.load & Mux(busy, half & ~final, ~self.done)),
            self.read.eq(more & ~fill),
        ]
        m.d.sync += [
            half.eq(busy & ~half), high.eq(write.data[16:]),
            # Used in the second cycle of a vector; they change after it.
            last_group.eq(single | (group == groups - 1)), last_word.eq(words_left == 1),
            final.eq((single | (group == groups - 1)) & (words_left == 1)),
        ]
        with m.If(~busy | half):
            m.d.sync += busy.eq(more & (fill | self.read_ready))
        with m.If(busy & half):
            m.d.sync += group.eq(group + 1)
            with m.If(last_group):
                m.d.sync += [
                    group.eq(0), word.eq(word + 1), words_left.eq(words_left - 1),
                    self.done.eq(last_word),
                ]
        return m
