"""The controller of an SDR SDRAM: from a slave of AXI4 to the pins of the chip."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.dma.axi import Axi4, AxiResponse
from weft.hw.sdram.bursts import Bursts
from weft.hw.sdram.scheduler import Access, Command, Scheduler

__all__ = ["SdramController", "SdramPins"]


class SdramPins(wiring.Signature):
    """The pins of a chip but for its clock, as the controller drives them.

    Each output comes from a register and each input goes to one, or these are in the pads.

    Parameters
    ----------
    chip : `weft.sdram.SdramChip`

    Attributes
    ----------
    cke, cs_n : Out, 1 bit each
        Always 1; always 0.
    ras_n, cas_n, we_n : Out, 1 bit each
    ba : Out
        Bank.
    a : Out
        Row, or column and bit 10.
    dqm : Out, 1 bit a byte
    dq_o : Out, ``width`` bits
    dq_oe : Out, 1 bit
        ``dq_o`` is driven.
    dq_i : In, ``width`` bits
    """

    def __init__(self, chip):
        super().__init__({
            "cke": Out(1, init=1), "cs_n": Out(1),
            "ras_n": Out(1, init=1), "cas_n": Out(1, init=1), "we_n": Out(1, init=1),
            "ba": Out(range(chip.banks)), "a": Out(max(11, ceil_log2(chip.rows))),
            "dqm": Out(chip.word_bytes, init=(1 << chip.word_bytes) - 1),
            "dq_o": Out(chip.width), "dq_oe": Out(1), "dq_i": In(chip.width),
        })


class WriteWords(wiring.Component):
    """Holds a beat of writes, and gives its words to the pins.

    Parameters
    ----------
    width : int
        Bits of a word.
    data_bytes : int
        Bytes of a beat.
    pads : bool
        As of `SdramController`.
    masks : bool
        As of `weft.sdram.SdramChip`.

    Attributes
    ----------
    load : In, 1 bit
        Take ``beat`` and ``strb``.
    beat, strb : In
        Data and byte enables.
    free : Out, 1 bit
        A beat can be taken.
    write_word : In, 1 bit
        The next word goes to the pins.
    mask : In, 1 bit
        Mask all bytes while no word is written.
    dq, dqm, oe : Out
        For the pins, a cycle after ``write_word``; with ``pads``, in its cycle.
    skip : Out, 1 bit, without ``masks``
        ``write_word``, of a word of which not all bytes are enabled.
    """

    def __init__(self, *, width, data_bytes, pads, masks):
        self.width = width
        self.pads = pads
        self.masks = masks
        self.words = 8 * data_bytes // width
        super().__init__({
            "load": In(1), "beat": In(8 * data_bytes), "strb": In(data_bytes), "free": Out(1),
            "write_word": In(1), "mask": In(1),
            "dq": Out(width), "dqm": Out(width // 8), "oe": Out(1),
            **({} if masks else {"skip": Out(1)}),
        })

    def elaborate(self, platform):
        m = Module()
        beat, mask = Signal.like(self.beat), Signal.like(self.strb)
        full, index, end = Signal(), Signal(range(self.words)), Signal()
        m.d.comb += [
            end.eq(self.write_word & (index == self.words - 1)), self.free.eq(~full | end),
        ]
        if not self.masks:
            m.d.comb += self.skip.eq(self.write_word & mask[:self.width // 8].any())
        with m.If(end):
            m.d.sync += full.eq(0)
        with m.If(self.write_word):
            m.d.sync += [beat.eq(beat >> self.width), mask.eq(mask >> self.width // 8)]
        with m.If(self.load):
            m.d.sync += [full.eq(1), beat.eq(self.beat), mask.eq(~self.strb)]
        m.d.sync += index.eq(index + self.write_word)
        m.d["comb" if self.pads else "sync"] += [
            self.oe.eq(self.write_word),
            # No multiplexer: the way to the pads is long.
            self.dq.eq(beat[:self.width]),
            self.dqm.eq(
                Mux(self.write_word, mask[:self.width // 8], self.mask.replicate(len(self.dqm)))
            ),
        ]
        return m


class ReadWords(wiring.Component):
    """Collects words in beats. Words that a slow master does not take yet wait in LUT RAM.

    Parameters
    ----------
    width : int
        Bits of a word.
    data_bytes : int
        Bytes of a beat.
    words : int
        Words of an access.
    latency : int
        Cycles from ``read_word`` to the word in ``dq``.
    pads : bool
        As of `SdramController`: ``dq`` comes a cycle later.

    Attributes
    ----------
    start : In, 1 bit
        Pulse: an access starts.
    room : Out, 1 bit
        There is room for the words of one more access.
    read_word, last : In, 1 bit each
        As of `Scheduler`.
    dq : In
        The word at the pins.
    empty : Out, 1 bit
        No access has words on their way, or in a beat.
    pause : In, 1 bit
        Collect no words: another beat is offered in place of this one.
    beat : Out
    valid, beat_last : Out, 1 bit each
        A beat is offered; it is the last one of its request.
    ready : In, 1 bit
        The beat is taken.
    """

    DEPTH = 16  # words that wait: two accesses of 8 hide the way through the chip

    def __init__(self, *, width, data_bytes, words, latency, pads):
        self.width = width
        self.pads = pads
        self.beat_words = 8 * data_bytes // width
        self.words = words
        self.latency = latency
        super().__init__({
            "start": In(1), "room": Out(1), "read_word": In(1), "last": In(1), "dq": In(width),
            "empty": Out(1), "pause": In(1),
            "beat": Out(8 * data_bytes), "valid": Out(1), "beat_last": Out(1), "ready": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        entry = data.StructLayout({"word": self.width, "last": 1})
        m.submodules.waiting = waiting = Memory(shape=entry, depth=self.DEPTH, init=[])
        write, read = waiting.write_port(), waiting.read_port(domain="comb")
        # Words on their way, the newest one in the lowest bit.
        coming, last = Signal(self.latency), Signal(self.latency)
        word = Signal(self.width)
        put, get = (Signal(range(2 * self.DEPTH), name=name) for name in ("put", "get"))
        waits, pop = Signal(), Signal()
        index = Signal(range(self.beat_words))
        m.d.sync += [
            coming.eq(Cat(self.read_word, coming)), last.eq(Cat(self.last, last)),
            put.eq(put + coming[-1]), get.eq(get + pop), index.eq(index + pop),
        ]
        m.d["comb" if self.pads else "sync"] += word.eq(self.dq)
        m.d.comb += [
            write.en.eq(coming[-1]), write.addr.eq(put), write.data.word.eq(word),
            write.data.last.eq(last[-1]), read.addr.eq(get),
            waits.eq(put != get), pop.eq(waits & (~self.valid | self.ready) & ~self.pause),
        ]
        with m.If(self.ready):
            m.d.sync += self.valid.eq(0)
        with m.If(pop):
            m.d.sync += [
                self.beat.eq(Cat(self.beat[self.width:], read.data.word)),
                self.beat_last.eq(read.data.last),
                self.valid.eq(index == self.beat_words - 1),
            ]
        accesses = self.DEPTH // self.words
        open_ = Signal(range(accesses + 1))  # accesses with a word that waits, or will
        done = pop & index[: ceil_log2(self.words)].all()
        m.d.sync += open_.eq(open_ + self.start - done)
        m.d.comb += [
            self.room.eq(open_ != accesses), self.empty.eq((open_ == 0) & ~waits & ~self.valid),
        ]
        return m


class SdramController(wiring.Component):
    """A chip as a memory behind AXI4: bytes ``row | bank | column`` from the highest bit down.

    A linear stream changes its bank with each row, so the next row opens while words of this one
    transfer. One READ or WRITE moves 8 words, or a beat if that is less. Responses come in the
    order of the bursts of each direction; there are no IDs.

    The controller accepts what `weft.hw.network_core.memory.program_memory.ProgramMemory` sends:
    INCR bursts of whole beats that do not cross a multiple of 16 beats; `Bursts` answers others
    with SLVERR. A write is answered when its last beat is accepted; later reads see it. A read
    whose beats are not taken holds up the requests behind it, but never a refresh.

    The contents are lost in a reset: the chip is set up again, and not refreshed until then.

    Parameters
    ----------
    chip : `weft.sdram.SdramChip`
    timing : `weft.sdram.SdramTiming`
        Of this chip, at the clock of the controller.
    data_bytes : int
        Bytes of a beat: a power of two, at least two words, at most a 16th of a row.
    pads : bool
        The registers of the pins are outside, in the pads: outputs come a cycle earlier, and
        ``dq_i`` comes a cycle later. At the chip nothing changes.

    Attributes
    ----------
    axi : In, `Axi4`
    ar_foreign, aw_foreign : In, 1 bit each, valid with the address
        The burst has another kind or size, so it is refused. 0 for a master with `Axi4`.
    pins : Out, `SdramPins`
    again : Signal
        As of `Scheduler`; 1 bit. It is no port, because only boards whose clock of the chip moves
        use it.

    Raises
    ------
    ValueError
        If ``data_bytes`` does not fit the chip.

    Source: JEDEC JESD21-C 3.11.5, SDRAM; data sheets of the chips.
    """

    PINS = 1  # register from the scheduler to the pins

    def __init__(self, chip, timing, *, data_bytes, pads=False):
        self.chip = chip
        self.pads = pads
        self.timing = timing
        self.data_bytes = data_bytes
        self.access = Access(chip, data_bytes=data_bytes)
        self.again = Signal()
        super().__init__({
            "axi": In(Axi4(data_bytes=data_bytes)), "ar_foreign": In(1), "aw_foreign": In(1),
            "pins": Out(SdramPins(chip)),
        })

    @property
    def latency(self):
        """`weft.sdram.SdramTiming.read_latency` of a beat."""
        return self.timing.read_latency(self.data_bytes // self.chip.word_bytes)

    def elaborate(self, platform):
        m = Module()
        width, data_bytes = self.chip.width, self.data_bytes
        m.submodules.scheduler = scheduler = Scheduler(
            self.chip, self.timing, data_bytes=data_bytes
        )
        m.submodules.bursts = bursts = Bursts(self.chip, data_bytes=data_bytes)
        m.submodules.writes = writes = WriteWords(
            width=width, data_bytes=data_bytes, pads=self.pads, masks=self.chip.masks
        )
        m.submodules.reads = reads = ReadWords(
            width=width, data_bytes=data_bytes, words=self.access.words,
            latency=self.PINS + self.timing.cas + 1, pads=self.pads,
        )
        for name in ("aw", "w", "b", "ar"):
            connect(m, flipped(getattr(self.axi, name)), getattr(bursts, name))
        r, w = self.axi.r, self.axi.w.payload
        m.d.comb += [
            bursts.ar_foreign.eq(self.ar_foreign), bursts.aw_foreign.eq(self.aw_foreign),
            scheduler.again.eq(self.again),
            scheduler.request.eq(bursts.request), scheduler.offered.eq(bursts.offered),
            bursts.taken.eq(scheduler.taken),
            writes.load.eq(bursts.load), writes.beat.eq(w.data), writes.strb.eq(w.strb),
            bursts.free.eq(writes.free), writes.write_word.eq(scheduler.write_word),
            writes.mask.eq(~scheduler.ready),
            reads.start.eq(scheduler.read_start), scheduler.room.eq(reads.room),
            reads.read_word.eq(scheduler.read_word), reads.last.eq(scheduler.last),
            reads.dq.eq(self.pins.dq_i), reads.ready.eq(r.ready),
            reads.pause.eq(bursts.error),
            bursts.refuse.eq(reads.empty & ~scheduler.reading), bursts.error_taken.eq(r.ready),
            r.valid.eq(reads.valid | bursts.error), r.payload.data.eq(reads.beat),
            r.payload.last.eq(Mux(bursts.error, bursts.error_last, reads.beat_last)),
            r.payload.resp.eq(Mux(bursts.error, AxiResponse.SLVERR, AxiResponse.OKAY)),
        ]
        self._drive_pins(m, scheduler, writes)
        return m

    def _drive_pins(self, m, scheduler, writes):
        pins = self.pins
        command = Value.cast(scheduler.command)
        if not self.chip.masks:
            command = Mux(writes.skip, Command.NOP, command)
        m.d.comb += [
            pins.cke.eq(1), pins.cs_n.eq(0),
            pins.dq_o.eq(writes.dq), pins.dqm.eq(writes.dqm), pins.dq_oe.eq(writes.oe),
        ]
        m.d["comb" if self.pads else "sync"] += [
            Cat(pins.we_n, pins.cas_n, pins.ras_n).eq(command),
            pins.ba.eq(scheduler.ba), pins.a.eq(scheduler.a),
        ]
