"""The loader, and the buffers that it fills: weights, parameters and the ADD table."""

from contextlib import nullcontext

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.arith.int4 import CODE_BITS, weight_of
from weft.hw.buffers.bank import Bank
from weft.hw.network_core.interface import BufferRead, LoadPort, MemoryWindow, ReadPort, TableRead
from weft.hw.network_core.layouts import ListLoadFields, VectorAddress, add_vectors
from weft.network_core.config import ADD_TABLE_BYTES, ADD_TABLE_WORDS
from weft.network_core.descriptors import LoadTarget

__all__ = ["AddTables", "ListLoader", "LoadedBuffer", "LoadedWord"]


_FEW_WORDS = 32  # that are cheaper in LUT RAM than in blocks of twice the words


class LoadedWord(data.StructLayout):
    """A write of a `LoadedBuffer`, or of `weft.hw.network_core.loads.loader.AddTables`.

    ``enable`` has one bit for each group of ``read_vectors`` vectors of the word, and ``data`` has
    all its vectors.

    Parameters
    ----------
    config : NetworkCoreConfig
    vectors, words : int
        As of the buffer.
    """

    def __init__(self, config, vectors, words):
        super().__init__({
            "enable": -(-vectors // config.read_vectors),
            "word": ceil_log2(words),
            "data": data.ArrayLayout(8 * config.array.depth, vectors),
        })


class LoadedBuffer(wiring.Component):
    """Memory of words of ``vectors`` vectors, with a bank for each ``read_vectors`` of them.

    A block RAM has a power of two of words: 512 of 36 bits, or 1,024 of 18 bits, in an ECP5. Up to
    32 words beyond a power of two are in LUT RAM, and the blocks keep their width.

    Parameters
    ----------
    config : NetworkCoreConfig
    vectors : int
        Of a word: a multiple of ``read_vectors``.
    words : int

    Attributes
    ----------
    write : In, `LoadedWord`
        A word can be read WRITE cycles later.
    read : In, `weft.hw.network_core.interface.BufferRead` of words of ``vectors`` vectors
    """

    LATENCY = Bank.LATENCY
    WRITE = 2  # a register near the blocks, which can be far from the loader; the bank

    def __init__(self, config, *, vectors, words):
        self.config = config
        self.vectors = vectors
        self.words = words
        super().__init__({
            "write": In(LoadedWord(config, vectors, words)),
            "read": In(BufferRead(
                ceil_log2(words), data.ArrayLayout(8 * config.array.depth, vectors)
            )),
        })

    def elaborate(self, platform):
        m = Module()
        width = 8 * self.config.array.depth * self.config.read_vectors
        write = Signal.like(self.write)
        m.d.sync += write.eq(self.write)
        for group in range(self.vectors // self.config.read_vectors):
            data = write.data.as_value().word_select(group, width)
            m.d.comb += self.read.data.as_value().word_select(group, width).eq(
                self._group(m, group, write.enable[group], write.word, data)
            )
        return m

    def _group(self, m, group, enable, word, data):
        """Add the banks of a group of vectors; return the vectors of the word that is read."""
        most = 1 << (self.words - 1).bit_length() - 1  # words of the next smaller power of two
        few = self.words - most
        if not 0 < few <= _FEW_WORDS < most:
            return self._bank(m, f"bank_{group}", self.words, enable, word, data)
        level = ceil_log2(most)
        writes_few, reads_few = word[level], self.read.address[level]
        first = self._bank(m, f"bank_{group}", most, enable & ~writes_few, word, data)
        last = self._bank(m, f"few_{group}", few, enable & writes_few, word, data, lut_ram=True)
        for n in range(self.LATENCY):
            later = Signal(name=f"reads_few_{group}_{n}", reset_less=True)
            m.d.sync += later.eq(reads_few)
            reads_few = later
        return Mux(reads_few, last, first)

    def _bank(self, m, name, words, enable, word, data, *, lut_ram=False):
        """Add a bank; return its read data."""
        m.submodules[name] = bank = Bank(
            width=len(data), depth=words, target=self.config.array.target, lut_ram=lut_ram
        )
        m.d.comb += [
            bank.write_en.eq(enable),
            bank.write_addr.eq(word),
            bank.write_data.eq(data),
            bank.read_addr.eq(self.read.address),
        ]
        return bank.read_data


class AddTables(wiring.Component):
    """A table of ADD_TABLE_WORDS words of 32 bits for each lane; all lanes have the same words.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    write : In, `weft.hw.network_core.loads.loader.LoadedWord`
        A word can be read WRITE cycles later.
    read : In, `weft.hw.network_core.interface.TableRead`
    """

    LATENCY = Bank.LATENCY
    WRITE = 2  # a register near the blocks; the bank

    def __init__(self, config):
        self.config = config
        super().__init__({
            "write": In(LoadedWord(config, config.add_table_vectors, ADD_TABLE_WORDS)),
            "read": In(TableRead(config)),
        })

    def elaborate(self, platform):
        m = Module()
        write = Signal.like(self.write)
        m.d.sync += write.eq(self.write)
        groups = len(write.enable)
        width = 8 * ADD_TABLE_BYTES // groups
        word = write.data.as_value()
        parts = [word.word_select(n, len(word) // groups)[:width] for n in range(groups)]
        for lane in range(self.config.array.lanes):
            address, found = self.read.address[lane], self.read.data[lane]
            for group, part in enumerate(parts):
                bank = Bank(width=width, depth=ADD_TABLE_WORDS, target=self.config.array.target)
                m.submodules[f"lane_{lane}_{group}"] = bank
                m.d.comb += [
                    bank.write_en.eq(write.enable[group]),
                    bank.write_addr.eq(write.word),
                    bank.write_data.eq(part),
                    bank.read_addr.eq(address),
                    found.word_select(group, width).eq(bank.read_data),
                ]
        return m


class ListLoader(wiring.Component):
    """Executes one load after the other; `weft.network_core.descriptors.ListLoad` has the meaning.

    It reads ``read_vectors`` vectors a cycle, or one word a cycle if a word has one vector. A fill
    writes one word a cycle. A beat with codes of int4 writes twice as many vectors. A read is
    requested LATENCY cycles after its load was accepted, or later.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    load : In, `weft.hw.network_core.interface.LoadPort`
    reads : Out, `weft.hw.network_core.interface.ReadPort`
    b, lines, table : Out, `weft.hw.network_core.loads.loader.LoadedWord`
        Writes to the B buffer, to the parameter buffer and to the ADD table.
    window : In, `weft.hw.network_core.interface.MemoryWindow`
        What may be read of the memory on the chip.
    program_limit : In; this and the next one only with a program memory
        First word of it that may not be read.
    on_chip : Out, 1 bit
        ``reads`` are of the memory on the chip. Stable from the first request of a load to its
        last data.
    """

    LATENCY = 3

    def __init__(self, config):
        self.config = config
        array = config.array
        super().__init__({
            "load": In(LoadPort(config)),
            "reads": Out(ReadPort(config)),
            "b": Out(LoadedWord(config, array.cols, config.b_words)),
            "lines": Out(LoadedWord(config, config.line_vectors, config.lines)),
            "table": Out(LoadedWord(config, config.add_table_vectors, ADD_TABLE_WORDS)),
            "window": In(MemoryWindow.of(config)),
            **({
                "program_limit": In(VectorAddress(config)["word"].width), "on_chip": Out(1),
            } if config.program_words else {}),
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config
        load, busy = Signal(ListLoadFields(config), reset_less=True), Signal()
        accept, last = Signal(), Signal()
        m.d.comb += [self.load.request.ready.eq(~busy), accept.eq(self.load.request.valid & ~busy)]
        with m.If(accept):
            m.d.sync += [load.eq(self.load.request.payload), busy.eq(1)]
        with m.Elif(last):
            m.d.sync += busy.eq(0)

        # Decoded as the load is accepted: no comparison precedes the address.
        target, diagonal, single = Signal(len(LoadTarget)), Signal(), Signal()
        last_group = Signal(range(max(len(port.enable) for port in self._ports())))
        payload = self.load.request.payload
        with m.If(accept):
            m.d.sync += target.eq(1 << payload.target)
            with m.Switch(payload.target):
                for kind, port in zip(LoadTarget, self._ports(), strict=True):
                    with m.Case(kind):
                        m.d.sync += last_group.eq(Mux(payload.fill, 0, len(port.enable) - 1))
            for_b = payload.target == LoadTarget.B
            m.d.sync += [diagonal.eq(0), single.eq(0)]
            with m.If(for_b & payload.diagonal):
                m.d.sync += [diagonal.eq(1), single.eq(1), last_group.eq(0)]
            if config.int4:
                with m.If(payload.packed):
                    m.d.sync += last_group.eq(config.code_beats - 1)
            if config.add_table_vectors == 1:
                with m.If(payload.target == LoadTarget.ADD_TABLE):
                    m.d.sync += single.eq(1)
            if config.program_words:
                m.d.sync += self.on_chip.eq(payload.on_chip)

        self._request(m, accept, single, last_group)
        self._write(m, load, accept, busy, target, diagonal, last_group, last)
        return m

    def _ports(self):
        """The writes, in the order of `LoadTarget`."""
        return self.b, self.lines, self.table

    def _request(self, m, accept, single, last_group):
        """Request the vectors of the load: one read a cycle, a cycle after its check began."""
        config = self.config
        active, advance, inside = Signal(), Signal(), Signal()
        scales = self._scales(m, accept, active & advance, "requested") if config.int4 else None
        address = Signal(VectorAddress(config), reset_less=True)
        group, words_left = Signal.like(last_group), Signal.like(self.load.request.payload.words)
        following, last_word = self._following(m, address, single)
        # The read that is checked: its address, and the word of its last vector.
        c_valid, c_last = Signal(), Signal.like(last_word, reset_less=True)
        c_address = Signal.like(address, reset_less=True)
        request, base, limit = self.reads.request, self.window.base, self.window.limit
        if config.program_words:
            base = Mux(self.on_chip, base, 0)
            limit = Mux(self.on_chip, limit, self.program_limit)
        m.d.comb += [
            advance.eq(~request.valid | request.ready),
            inside.eq((c_last < limit) & (c_address.word >= base)),
        ]
        m.d.sync += self.load.address_error.eq(0)
        with m.If(advance):
            m.d.sync += [
                request.valid.eq(c_valid & inside), request.payload.eq(c_address),
                c_valid.eq(active), c_address.eq(address), c_last.eq(last_word),
            ]
            with m.If(active):
                m.d.sync += address.eq(following)
                with m.If(~scales) if config.int4 else nullcontext():
                    m.d.sync += group.eq(group + 1)
                    with m.If(group == last_group):
                        m.d.sync += [group.eq(0), words_left.eq(words_left - 1)]
                        with m.If(words_left == 1):
                            m.d.sync += active.eq(0)
            with m.If(c_valid & ~inside):
                m.d.sync += [active.eq(0), c_valid.eq(0), self.load.address_error.eq(1)]
        with m.If(accept):
            payload = self.load.request.payload
            m.d.sync += [
                active.eq(~payload.fill), address.eq(payload.source), group.eq(0),
                words_left.eq(payload.words),
            ]
            if config.program_words:  # a head of loads adds no base
                start = payload.source.word + Mux(payload.on_chip, self.window.base, 0)
                m.d.sync += address.word.eq(start)

    def _following(self, m, address, single):
        """The address of the next read, and the word of the last vector of this one."""
        config, beat = self.config, self.config.read_vectors
        following = Signal(VectorAddress(config))
        last_word = Signal(len(address.word) + 1)
        one, more = (
            add_vectors(m, address, n, config.banks, name) for n,
            name in ((1, "one"), (beat, "more"))
        )
        beyond = Signal()  # the last vector is a word higher
        m.d.comb += [
            following.eq(Mux(single, one, more)),
            beyond.eq(~single & (address.bank >= config.banks - beat + 1)),
            last_word.eq(address.word + beyond),
        ]
        return following, last_word

    def _write(self, m, load, accept, busy, target, diagonal, last_group, last):
        """Write the data of each read, or the fill value: one cycle after it arrives."""
        config = self.config
        L = config.read_vectors
        word, words_left = Signal(16, reset_less=True), Signal.like(load.words)
        group, phase = Signal.like(last_group), Signal(range(config.phases))
        take, word_end = Signal(), Signal()
        arrives = busy & Mux(load.fill, words_left.any(), self.reads.data_valid)
        if config.int4:  # a beat of scales writes nothing
            scales = self._scales(m, accept, arrives, "arriving")
        m.d.comb += [
            take.eq(arrives & ~scales if config.int4 else arrives),
            word_end.eq(group == last_group),
            last.eq(take & word_end & (words_left == 1)),
        ]
        # The write port, one cycle later.
        w_target, w_all, w_diagonal = Signal.like(target), Signal(), Signal()
        w_group, w_word, w_phase = (Signal.like(s) for s in (group, word, phase))
        w_data = Signal(self.reads.data.shape(), reset_less=True)
        fill = load.fill_value.as_unsigned().replicate(L * config.array.depth)
        m.d.sync += [
            w_target.eq(target & take.replicate(len(target))), w_diagonal.eq(diagonal),
            w_all.eq(load.fill | diagonal), w_group.eq(group), w_word.eq(word), w_phase.eq(phase),
            w_data.eq(Mux(load.fill, fill, self.reads.data.as_value())),
            self.load.done.eq(last),
        ]
        with m.If(take):
            m.d.sync += group.eq(group + 1)
            with m.If(word_end):
                m.d.sync += [
                    group.eq(0), word.eq(word + 1), words_left.eq(words_left - 1),
                    phase.eq(phase + 1),
                ]
        with m.If(accept):
            payload = self.load.request.payload
            m.d.sync += [
                word.eq(payload.first_word), words_left.eq(payload.words), group.eq(0),
                phase.eq(0),
            ]
        if config.int4:
            w_packed = Signal()
            m.d.sync += w_packed.eq(load.packed)
            weights = self._weights(m, w_data.as_value(), w_target.any(), arrives & scales)
        for port, valid in zip(self._ports(), w_target, strict=True):
            m.d.comb += port.word.eq(w_word)
            for n in range(len(port.enable)):
                mine = w_group == n
                if config.int4 and port is self.b:  # a beat of codes has two groups
                    mine = Mux(w_packed, w_group == n // 2, mine)
                m.d.comb += port.enable[n].eq(valid & (w_all | mine))
        for port in (self.lines, self.table):
            for n in range(port.data.shape().length):
                m.d.comb += port.data[n].eq(w_data[n % L])
        for n in range(config.array.cols):
            column = self._column(w_data, w_diagonal, w_phase, n)
            if config.int4:
                column = Mux(w_packed, weights[n % len(weights)], column)
            m.d.comb += self.b.data[n].eq(column)

    def _scales(self, m, accept, beat, name):
        """Whether the next beat has scales: before the codes of each ``scaled_words`` words.

        ``beat``: a beat is requested, or arrives; ``name`` says which.
        """
        config, payload = self.config, self.load.request.payload
        scales, packed = Signal(name=f"scales_{name}"), Signal(name=f"packed_{name}")
        # Beats of codes behind the last scales, whose beat is for ``depth`` of them.
        codes = Signal(range(config.array.depth), name=f"codes_{name}")
        with m.If(beat & scales):
            m.d.sync += scales.eq(0)
        with m.Elif(beat):
            m.d.sync += [codes.eq(codes + 1), scales.eq(packed & codes.all())]
        with m.If(accept):
            m.d.sync += [scales.eq(payload.packed), packed.eq(payload.packed), codes.eq(0)]
        return scales

    def _weights(self, m, codes, used, scales_arrive):
        """The vectors of the codes of a beat: those of its columns.

        Their scales are the lowest ones of a register, which moves on when codes are ``used``.
        """
        config, depth = self.config, self.config.array.depth
        scales = Signal(8 * config.beat_bytes, reset_less=True)
        columns = 2 * config.read_vectors
        with m.If(scales_arrive):
            m.d.sync += scales.eq(self.reads.data.as_value())
        with m.Elif(used):
            m.d.sync += scales.eq(scales >> CODE_BITS * columns)
        return [
            Cat(
                weight_of(
                    codes.word_select(column * depth + byte, CODE_BITS),
                    scales.word_select(column, CODE_BITS),
                )
                for byte in range(depth)
            )
            for column in range(columns)
        ]

    def _column(self, vectors, diagonal, phase, column):
        """The vector of a column of B: the vector of its group, or a part of the first one."""
        cols, depth = self.config.array.cols, self.config.array.depth
        own = vectors[column % self.config.read_vectors]
        mine = phase == column // depth if cols > depth else Const(1)
        taken = sum(0xFF << 8 * d for d in range(depth) if d % cols == column % depth)
        return Mux(diagonal, vectors[0] & taken & mine.replicate(8 * depth), own)
