"""The loader: copies weights and parameters from the memory to their buffers."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.chip.descriptors import LoadTarget
from weft.hw.chip.layouts import ListLoadFields, VectorAddress, add_vectors
from weft.hw.chip.loaded_buffer import LoadedWord

__all__ = ["ListLoader"]


class ListLoader(wiring.Component):
    """Executes one load after the other; `weft.chip.descriptors.ListLoad` has the meaning.

    It reads ``read_vectors`` vectors a cycle, or one word a cycle if the words are diagonal. A fill
    writes one word a cycle. A read is requested LATENCY cycles after its load was accepted, or
    later.

    Parameters
    ----------
    chip : ChipConfig

    Attributes
    ----------
    load : In, stream of `ListLoadFields`
        Its ``source`` includes the base. Its fields are checked, except for the addresses.
    reads : Out, stream of `VectorAddress`
    read_valid, read_data : In
        1 bit, ``read_vectors`` vectors: the data of the reads, in order.
    b, lines : Out, `weft.hw.chip.loaded_buffer.LoadedWord`
        Writes to the B buffer and to the parameter buffer.
    done : Out, 1 bit
        Pulse in the cycle of the last write of a load.
    base, limit : In
        First word that may be read, and first word beyond.
    address_error : Out, 1 bit
        Pulse: a read outside of these limits was suppressed. The load never ends.
    """

    LATENCY = 3

    def __init__(self, chip):
        self.chip = chip
        core, address = chip.core, VectorAddress(chip)
        word = address["word"].width
        super().__init__({
            "load": In(stream.Signature(ListLoadFields(chip))),
            "reads": Out(stream.Signature(address)),
            "read_valid": In(1),
            "read_data": In(data.ArrayLayout(8 * core.depth, chip.read_vectors)),
            "b": Out(LoadedWord(chip, core.cols, chip.b_words)),
            "lines": Out(LoadedWord(chip, chip.line_vectors, chip.lines)),
            "done": Out(1),
            "base": In(word), "limit": In(word),
            "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        chip = self.chip
        load, busy = Signal(ListLoadFields(chip), reset_less=True), Signal()
        accept, last = Signal(), Signal()
        m.d.comb += [self.load.ready.eq(~busy), accept.eq(self.load.valid & ~busy)]
        with m.If(accept):
            m.d.sync += [load.eq(self.load.payload), busy.eq(1)]
        with m.Elif(last):
            m.d.sync += busy.eq(0)

        # Decoded as the load is accepted: no comparison precedes the address.
        to_b, diagonal = Signal(), Signal()
        groups = chip.core.cols // chip.read_vectors, chip.line_vectors // chip.read_vectors
        last_group = Signal(range(max(groups)))
        payload = self.load.payload
        for_b = payload.target == LoadTarget.B
        with m.If(accept):
            m.d.sync += [
                to_b.eq(for_b), diagonal.eq(payload.diagonal & for_b),
                last_group.eq(Mux(for_b, groups[0] - 1, groups[1] - 1)),
            ]
            with m.If(payload.fill | payload.diagonal & for_b):
                m.d.sync += last_group.eq(0)

        self._request(m, load, accept, diagonal, last_group)
        self._write(m, load, accept, busy, to_b, diagonal, last_group, last)
        return m

    def _request(self, m, load, accept, diagonal, last_group):
        """Request the vectors of the load: one read a cycle, a cycle after its check began."""
        chip = self.chip
        active, advance, inside = Signal(), Signal(), Signal()
        address = Signal(VectorAddress(chip), reset_less=True)
        group, words_left = Signal.like(last_group), Signal.like(load.words)
        following, last_word = self._following(m, address, diagonal)
        # The read that is checked: its address, and the word of its last vector.
        c_valid, c_last = Signal(), Signal.like(last_word, reset_less=True)
        c_address = Signal.like(address, reset_less=True)
        m.d.comb += [
            advance.eq(~self.reads.valid | self.reads.ready),
            inside.eq((c_address.word >= self.base) & (c_last < self.limit)),
        ]
        m.d.sync += self.address_error.eq(0)
        with m.If(advance):
            m.d.sync += [
                self.reads.valid.eq(c_valid & inside), self.reads.payload.eq(c_address),
                c_valid.eq(active), c_address.eq(address), c_last.eq(last_word),
            ]
            with m.If(active):
                m.d.sync += [address.eq(following), group.eq(group + 1)]
                with m.If(group == last_group):
                    m.d.sync += [group.eq(0), words_left.eq(words_left - 1)]
                    with m.If(words_left == 1):
                        m.d.sync += active.eq(0)
            with m.If(c_valid & ~inside):
                m.d.sync += [active.eq(0), c_valid.eq(0), self.address_error.eq(1)]
        with m.If(accept):
            payload = self.load.payload
            m.d.sync += [
                active.eq(~payload.fill), address.eq(payload.source), group.eq(0),
                words_left.eq(payload.words),
            ]

    def _following(self, m, address, diagonal):
        """The address of the next read, and the word of the last vector of this one."""
        chip, beat = self.chip, self.chip.read_vectors
        following = Signal(VectorAddress(chip))
        last_word = Signal(len(address.word) + 1)
        one, more = (
            add_vectors(m, address, n, chip.banks, name) for n, name in ((1, "one"), (beat, "more"))
        )
        beyond = Signal()  # the last vector is a word higher
        m.d.comb += [
            following.eq(Mux(diagonal, one, more)),
            beyond.eq(~diagonal & (address.bank >= chip.banks - beat + 1)),
            last_word.eq(address.word + beyond),
        ]
        return following, last_word

    def _write(self, m, load, accept, busy, to_b, diagonal, last_group, last):
        """Write the data of each read, or the fill value: one cycle after it arrives."""
        chip = self.chip
        L = chip.read_vectors
        word, words_left = Signal(16, reset_less=True), Signal.like(load.words)
        group, phase = Signal.like(last_group), Signal(range(chip.phases))
        take, word_end = Signal(), Signal()
        m.d.comb += [
            take.eq(busy & Mux(load.fill, words_left.any(), self.read_valid)),
            word_end.eq(group == last_group),
            last.eq(take & word_end & (words_left == 1)),
        ]
        # The write port, one cycle later.
        w_b, w_lines, w_all, w_diagonal = (
            Signal(name=name) for name in ("w_b", "w_lines", "w_all", "w_diagonal")
        )
        w_group, w_word, w_phase = (Signal.like(s) for s in (group, word, phase))
        w_data = Signal(self.read_data.shape(), reset_less=True)
        fill = load.fill_value.as_unsigned().replicate(L * chip.core.depth)
        m.d.sync += [
            w_b.eq(take & to_b), w_lines.eq(take & ~to_b), w_diagonal.eq(diagonal),
            w_all.eq(load.fill | diagonal), w_group.eq(group), w_word.eq(word), w_phase.eq(phase),
            w_data.eq(Mux(load.fill, fill, self.read_data.as_value())),
            self.done.eq(last),
        ]
        with m.If(take):
            m.d.sync += group.eq(group + 1)
            with m.If(word_end):
                m.d.sync += [
                    group.eq(0), word.eq(word + 1), words_left.eq(words_left - 1),
                    phase.eq(phase + 1),
                ]
        with m.If(accept):
            payload = self.load.payload
            m.d.sync += [
                word.eq(payload.first_word), words_left.eq(payload.words), group.eq(0),
                phase.eq(0),
            ]
        for port, valid in ((self.b, w_b), (self.lines, w_lines)):
            m.d.comb += port.word.eq(w_word)
            for n in range(len(port.enable)):
                m.d.comb += port.enable[n].eq(valid & (w_all | (w_group == n)))
        for n in range(chip.line_vectors):
            m.d.comb += self.lines.data[n].eq(w_data[n % L])
        for n in range(chip.core.cols):
            m.d.comb += self.b.data[n].eq(self._column(w_data, w_diagonal, w_phase, n))

    def _column(self, vectors, diagonal, phase, column):
        """The vector of a column of B: the vector of its group, or a part of the first one."""
        cols, depth = self.chip.core.cols, self.chip.core.depth
        own = vectors[column % self.chip.read_vectors]
        mine = phase == column // depth if cols > depth else Const(1)
        taken = sum(0xFF << 8 * d for d in range(depth) if d % cols == column % depth)
        return Mux(diagonal, vectors[0] & taken & mine.replicate(8 * depth), own)
