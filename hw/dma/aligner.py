"""The aligner: cuts runs of bytes out of beats, as pack words that start with the first byte."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["Aligner", "PackWord"]


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
