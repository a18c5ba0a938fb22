"""The packer: collects pack words in a memory of two halves, one filled while one is read."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank
from weft.hw.dma.layout import HALF_ROWS

__all__ = ["HalfRead", "PackReader", "Packer"]


class HalfRead(wiring.Signature):
    """Reads of a half of the pack buffer, from the side of the block that reads.

    Parameters
    ----------
    bytes_in : int
        Bytes of a stream word.
    row_words : int
        Stream words per row: a power of two.

    Attributes
    ----------
    filled : In, 1 bit
        A half is complete and can be read.
    last_row : In
        Index of its last row. Valid while ``filled``, as the next two.
    last_row_end, row_end : In
        Index of the last stream word in the last row, and in every other row.
    address : Out
        ``Cat(index, row)`` of a stream word.
    enable : Out, 1 bit
        The pipeline of the reads advances.
    data : In, ``bytes_in`` bytes
        The stream word; two cycles with ``enable`` after its ``address``.
    release : Out, 1 bit
        Pulse: the half was read. Also allowed in the cycle in which its last stream word is read.
    """

    def __init__(self, *, bytes_in, row_words):
        bits = ceil_log2(row_words)
        super().__init__({
            "filled": In(1),
            "last_row": In(range(HALF_ROWS)), "last_row_end": In(bits), "row_end": In(bits),
            "address": Out(bits + ceil_log2(HALF_ROWS)),
            "enable": Out(1),
            "data": In(8 * bytes_in),
            "release": Out(1),
        })


class Packer(wiring.Component):
    """Writes pack words into the packing memory, and reads stream words out of it.

    Each half has `HALF_ROWS` rows. A row holds the bytes of up to ``row_words`` stream words, in
    their order on the command stream. `weft.hw.dma.layout.Layout` says which byte goes where. A
    panel of 2 lines, a and b, with pack words of 2 values, 4 values of k per row, depth 1::

        pack word          K_MAJOR: line a, index 0        K_MINOR: k = 1
                                a0 a1                           a1 b1
        row              a0 -- a1 -- -- -- -- --         -- -- a1 b1 -- -- -- --
        full row         a0 b0 a1 b1 a2 b2 a3 b3         a0 b0 a1 b1 a2 b2 a3 b3

    A pack word is written two cycles after it came in. PACKED loads and headers use the first
    stream word of each row. Bytes of a row that hold no value are never written: they are
    undefined.

    Parameters
    ----------
    pack_word : shape
        `weft.hw.dma.aligner.PackWord`.
    layouts : as of `weft.hw.dma.layout.layouts`
    target : str
        As in Config.

    Attributes
    ----------
    words : In, ``valid`` and ``word``, a `PackWord`
    claim : In
        1 bit; pulse: a slice starts, and claims a half.
    room : Out
        1 bit; a half is free to be claimed.
    idle : Out
        1 bit; no half is claimed.
    half : In, `HalfRead`
    """

    def __init__(self, *, pack_word, layouts, target):
        self.layouts = layouts
        self.target = target
        self.stream_bytes = layouts[-1].size
        bits = ceil_log2(max(x.row_words for x in layouts))
        self.row_words = 1 << bits
        self.row_bytes = self.row_words * self.stream_bytes
        super().__init__({
            "words": In(data.StructLayout({"valid": 1, "word": pack_word})),
            "claim": In(1),
            "room": Out(1),
            "idle": Out(1),
            "half": In(HalfRead(bytes_in=self.stream_bytes, row_words=self.row_words)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.bank = bank = Bank(
            width=8 * self.row_bytes, depth=2 * HALF_ROWS, parts=self.row_words, bytewise=True,
            target=self.target,
        )
        write_half, read_half = Signal(), Signal()  # indices of the halves
        claimed, filled = Signal(range(3)), Signal(range(3))  # numbers of halves
        slice_done, half = Signal(), self.half
        m.d.sync += [
            claimed.eq(claimed + self.claim - half.release),
            filled.eq(filled + slice_done - half.release),
            read_half.eq(read_half ^ half.release), write_half.eq(write_half ^ slice_done),
        ]
        m.d.comb += [
            self.room.eq(~claimed[1]), self.idle.eq(claimed == 0), half.filled.eq(filled != 0),
            bank.read_addr.eq(Cat(half.address, read_half)), bank.read_en.eq(half.enable),
            half.data.eq(bank.read_data),
        ]

        # First cycle: the row of the pack word, and its position in the row, one-hot.
        word = self.words.word
        kinds = [*self._kinds()]
        s_word, s_valid = Signal.like(word, reset_less=True), Signal()
        s_row = Signal(range(HALF_ROWS), reset_less=True)
        positions = max(position for *_, targets in kinds for _, position, _ in targets) + 1
        s_position = Signal(positions, reset_less=True)
        position = _select(word, [position for _, position, _, _ in kinds])
        m.d.sync += [
            s_valid.eq(self.words.valid), s_word.eq(word),
            s_row.eq(_select(word, [row for row, _, _, _ in kinds])),
            s_position.eq(Cat(position == n for n in range(positions))),
        ]

        # Second cycle: the write.
        enables, values = self._bytes(s_word, s_position, kinds)
        m.d.sync += [
            bank.write_en.eq(Mux(s_valid, Cat(enables), 0)), bank.write_data.eq(Cat(values)),
            bank.write_addr.eq(Cat(s_row, write_half ^ slice_done)),
            slice_done.eq(s_valid & s_word.last),
        ]
        self._ends(m, kinds, s_valid & s_word.last, s_word, s_row, write_half ^ slice_done,
                   read_half)
        return m

    def _kinds(self):
        """The kinds of pack words, in the order of `_select`: row, position, row_words, targets.

        The position of a pack word is its place within the row. Targets are the bytes of a row
        that pack words of this kind write: ``(byte of the row, position of the pack word that
        writes it, byte of the pack word)``.
        """
        word = self.words.word
        size = len(word.bytes)
        for x in self.layouts:
            cut, lines = ceil_log2(x.line_pack_words), ceil_log2(x.edge)
            yield word.index >> cut, Cat(word.index[:cut], word.task[:lines]), x.row_words, [
                (byte, at // size | line << cut, at % size)
                for byte, line, k, s in x.byte_map() for at in [k * x.size + s]
            ]
        for x in self.layouts[:2]:
            cut, parts = ceil_log2(x.row_k), ceil_log2(x.k_pack_words)
            yield word.task >> cut, Cat(word.task[:cut], word.index[:parts]), x.row_words, [
                (byte, k | at // size << cut, at % size)
                for byte, line, k, s in x.byte_map() for at in [line * x.size + s]
            ]

    def _bytes(self, word, position, kinds):
        """For each byte of a row: whether ``word`` writes it, and the value."""
        targets = [
            {byte: (position[code], source) for byte, code, source in kind[3]} for kind in kinds
        ]
        enables, values = [], []
        for byte in range(self.row_bytes):
            options = [kind.get(byte, (Const(0), None)) for kind in targets]
            default = next((source for _, source in options if source is not None), 0)
            enables.append(_select(word, [hit for hit, _ in options]))
            values.append(_select(word, [
                word.bytes[default if source is None else source] for _, source in options
            ]))
        return enables, values

    def _ends(self, m, kinds, slice_done, word, row, write_half, read_half):
        """Store where the data of each half end, and show the end of the half that is read."""
        outputs = self.half.last_row, self.half.last_row_end, self.half.row_end
        ends = [[Signal.like(value) for value in outputs] for _ in range(2)]
        full = _select(word, [
            Const(row_words - 1, len(self.half.row_end)) for _, _, row_words, _ in kinds
        ])
        with m.If(slice_done):
            for half, (last_row, last_row_end, row_end) in enumerate(ends):
                with m.If(write_half == half):
                    m.d.sync += [
                        last_row.eq(row), last_row_end.eq(word.last_row_end), row_end.eq(full)
                    ]
        m.d.comb += [
            value.eq(Mux(read_half, odd, even))
            for value, even, odd in zip(outputs, *ends, strict=True)
        ]


def _select(word, values):
    """The value for a pack word of A, B, a PACKED load, A in K_MINOR, or B in K_MINOR."""
    a, b, packed, a_k_minor, b_k_minor = values
    return Mux(word.packed, packed, Mux(
        word.k_minor, Mux(word.operand_b, b_k_minor, a_k_minor), Mux(word.operand_b, b, a)
    ))


class PackReader(wiring.Component):
    """Sends each filled half: row by row, and within a row one stream word after the other.

    Parameters
    ----------
    bytes_in : int
        Bytes of a stream word.
    row_words : int
        Stream words per row: a power of two.

    Attributes
    ----------
    half : Out, `weft.hw.dma.packer.HalfRead`
    commands : Out, stream of ``bytes_in`` bytes
    idle : Out
        1 bit; no stream word is in progress.
    """

    def __init__(self, *, bytes_in, row_words):
        super().__init__({
            "half": Out(HalfRead(bytes_in=bytes_in, row_words=row_words)),
            "commands": Out(stream.Signature(8 * bytes_in)),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        half = self.half
        row, index = Signal.like(half.last_row), Signal.like(half.row_end)
        next_valid, read, row_done = Signal(), Signal(), Signal()
        in_last_row = row == half.last_row
        m.d.comb += [
            half.enable.eq(~self.commands.valid | self.commands.ready),
            self.commands.payload.eq(half.data),
            half.address.eq(Cat(index, row)),
            read.eq(half.enable & half.filled),
            row_done.eq((index == half.row_end) | (in_last_row & (index == half.last_row_end))),
            half.release.eq(read & in_last_row & (index == half.last_row_end)),
            self.idle.eq(~next_valid & ~self.commands.valid),
        ]
        with m.If(half.enable):
            m.d.sync += [next_valid.eq(half.filled), self.commands.valid.eq(next_valid)]
        with m.If(read):
            m.d.sync += index.eq(index + 1)
            with m.If(row_done):
                m.d.sync += [index.eq(0), row.eq(row + 1)]
        with m.If(half.release):
            m.d.sync += row.eq(0)
        return m
