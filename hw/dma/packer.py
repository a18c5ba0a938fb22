"""The aligner and the packer: runs of bytes from beats, and the memory of their words."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank
from weft.hw.dma.layout import HALF_ROWS

__all__ = ["Aligner", "HalfRead", "PackReader", "PackWord", "Packer"]

class PackWord(data.StructLayout):
    """``pack_bytes`` bytes for the packing memory, and their place in it.

    ============ =========================================================================
    bytes        the bytes
    operand_b    1: of operand B, 0: of A
    k_minor      1: the bytes are values of one k, 0: values of one line
    packed       1: the bytes belong to a PACKED load or to a header; operand_b and k_minor
                 have no effect
    last         1: last pack word of its slice
    last_row_end valid with ``last``: index of the last stream word in the slice's last row
    index        index of the pack word within its task
    task         index of the task within its slice: the line, or the k
    ============ =========================================================================

    Parameters
    ----------
    pack_bytes : int
    task : shape
        `weft.hw.dma.address_generator.PackTask`.
    max_tasks : int
        Tasks of a slice, at most.
    """

    def __init__(self, *, pack_bytes, task, max_tasks):
        super().__init__({
            "bytes": data.ArrayLayout(8, pack_bytes),
            "operand_b": 1, "k_minor": 1, "packed": 1, "last": 1,
            "last_row_end": task["last_row_end"].shape,
            "index": task["last_word"].shape,
            "task": range(max_tasks),
        })


class Aligner(wiring.Component):
    """Cuts the run of bytes of each task out of its beats, and fills it up with zeros.

    A part is an aligned piece of a beat with the size of a pack word. The aligner takes one part
    per cycle, and joins two neighbouring parts at the offset where the run starts. After the run
    it emits zeros, until the task has all its pack words. For pack words of 4 bytes, and a run of
    7 bytes ``a`` to ``g`` that starts at byte 2 of a part::

        parts taken     --ab     cdef     g---
        pack words               abcd     efg0     0000  ...

    A pack word comes three cycles after its last part was taken. A task takes one cycle per pack
    word and one more, and another one if the run does not start at the first byte of a part.
    The pack words have no ``ready``: a slice starts only when ``room`` is high.

    Parameters
    ----------
    data_bytes : int
        Bytes of a beat.
    pack_bytes : int
        Bytes of a pack word, and of a part.
    task : shape
        `weft.hw.dma.address_generator.PackTask`.
    max_tasks : int
        Tasks of a slice, at most.

    Attributes
    ----------
    tasks : In, stream of ``task``
    beat_valid : In
        1 bit; a beat is available: ``valid`` of `weft.hw.dma.reader.Reader`.
    part, index, pop : In, Out, Out
        As of `weft.hw.dma.reader.Reader`.
    room : In
        1 bit; the packing memory has a free half, so a slice may start.
    slice_start : Out
        1 bit; pulse: a slice starts.
    words : Out, ``valid`` and ``word``, a `PackWord`
        All zeros while not ``valid``.
    load_done : Out
        1 bit; pulse: the last task of a load is done.
    """

    def __init__(self, *, data_bytes, pack_bytes, task, max_tasks):
        self.pack_bytes = pack_bytes
        self.word_shape = PackWord(pack_bytes=pack_bytes, task=task, max_tasks=max_tasks)
        super().__init__({
            "tasks": In(stream.Signature(task)),
            "beat_valid": In(1),
            "part": In(8 * pack_bytes),
            "index": Out(range(data_bytes // pack_bytes)),
            "pop": Out(1),
            "room": In(1),
            "slice_start": Out(1),
            "words": Out(data.StructLayout({"valid": 1, "word": self.word_shape})),
            "load_done": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        cut = ceil_log2(self.pack_bytes)
        task = self.tasks.payload  # stays the same until the task is done
        busy = Signal()
        beat_open = Signal()  # some parts of the available beat were taken; it was not popped
        prime = Signal()  # this step takes the first part of a run, and emits nothing
        has_data = Signal()  # the pack word of this step has bytes of the run
        new_slice = Signal(init=1)  # the next task is the first of a slice
        word = Signal(self.word_shape)
        start = Signal()

        # Registers that are computed one step ahead: whether this step takes a part; whether its
        # pack word, or the next one, is the last with bytes of the run; whether its pack word is
        # the last of the task. The last one with bytes takes a part only if the run extends to it.
        take_part, last_data, next_last_data, last_word = Signal(), Signal(), Signal(), Signal()
        offset, tail = task.offset[:cut], task.last_byte[:cut]
        extends = (offset == 0) | (offset + tail)[cut] if cut else Const(1)
        next_index, next_index_2 = Signal.like(word.index), Signal.like(word.index)
        next_step_last = Mux(prime, last_data, next_last_data)
        step, emit, done, take = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            step.eq(busy & (~take_part | self.beat_valid)),
            emit.eq(step & ~prime),
            done.eq(emit & last_word),
            take.eq(step & take_part),
            self.pop.eq((take & self.index.all()) | (done & (take | beat_open))),
            self.tasks.ready.eq(done), self.load_done.eq(done & task.load_last),
            word.operand_b.eq(task.operand_b), word.k_minor.eq(task.k_minor),
            word.packed.eq(task.packed),
            word.last.eq(task.last & done), word.last_row_end.eq(task.last_row_end),
            start.eq(~busy & self.tasks.valid & (~new_slice | self.room)),
            self.slice_start.eq(start & new_slice),
        ]
        with m.If(take):
            m.d.sync += [self.index.eq(self.index + 1), beat_open.eq(~self.index.all())]
        with m.If(step):
            m.d.sync += [
                prime.eq(0), has_data.eq(has_data & (prime | ~last_data)),
                take_part.eq(has_data & (prime | ~last_data) & (~next_step_last | extends)),
            ]
        with m.If(emit):
            m.d.sync += [
                word.index.eq(next_index), next_index.eq(next_index_2),
                next_index_2.eq(next_index_2 + 1),
                last_word.eq(next_index == task.last_word), last_data.eq(next_last_data),
                next_last_data.eq(next_index_2 == task.last_byte >> cut),
            ]
        with m.If(done):
            m.d.sync += [busy.eq(0), new_slice.eq(task.last), word.task.eq(word.task + 1)]
            with m.If(task.last):
                m.d.sync += word.task.eq(0)
        with m.If(start):
            m.d.sync += [
                busy.eq(1), word.index.eq(0), next_index.eq(1), next_index_2.eq(2),
                beat_open.eq(0), self.index.eq(task.offset[cut:]), has_data.eq(task.has_data),
                prime.eq(task.has_data & offset.any()), take_part.eq(task.has_data),
                last_data.eq(task.last_byte >> cut == 0),
                next_last_data.eq(task.last_byte >> cut == 1),
                last_word.eq(task.last_word == 0),
            ]
        keep = Cat(  # bytes of the pack word that are of the run
            has_data, *(has_data & (~last_data | (n <= tail)) for n in range(1, self.pack_bytes))
        )
        self._join(m, step, emit, word, offset, keep)
        return m

    def _join(self, m, step, emit, word, offset, keep):
        """Join the part of each step, which comes two cycles later, to the one before it."""
        for _ in range(2):
            before, (step, emit) = (step, emit), (Signal(), Signal())
            m.d.sync += [new.eq(old) for new, old in zip((step, emit), before, strict=True)]
            before, (word, offset, keep) = (word, offset, keep), (
                Signal.like(value, reset_less=True) for value in (word, offset, keep)
            )
            m.d.sync += [
                new.eq(old) for new, old in zip((word, offset, keep), before, strict=True)
            ]
        last_part, joined = Signal.like(self.part, reset_less=True), Signal.like(self.part)
        with m.If(step):
            m.d.sync += last_part.eq(self.part)
        with m.Switch(offset):
            for n in range(self.pack_bytes):
                with m.Case(n):
                    start = 8 * (n or self.pack_bytes)
                    m.d.comb += joined.eq(
                        Cat(last_part, self.part)[start : start + len(last_part)]
                    )
        m.d.sync += [
            self.words.valid.eq(emit), self.words.word.eq(word),
            self.words.word.bytes.eq(joined & Cat(bit.replicate(8) for bit in keep)),
        ]
        with m.If(~emit):
            m.d.sync += self.words.word.eq(0)


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
        `weft.hw.dma.packer.PackWord`.
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
