"""`WordTransfers`: moves words between the program memory and the main memory."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.delay import pipeline
from weft.hw.dma.axi import Axi4
from weft.hw.fabrics import FABRICS
from weft.hw.language_core.loops import LoopNest
from weft.hw.language_core.unpacker import Int4Unpacker
from weft.hw.stream.fifo import SkidBuffer
from weft.language_core.config import BEAT_BYTES, PROGRAM_BITS, WORD_BEATS, WORD_BYTES
from weft.language_core.descriptors import Transfer
from weft.language_core.latencies import ARRIVED, READ, RING_WORDS, TRANSFER_TIMEOUT

__all__ = ["WordTransfers"]

_RING = ceil_log2(RING_WORDS)
_PLACE = ceil_log2(WORD_BYTES)
_BEAT = ceil_log2(WORD_BEATS)
_LEVELS = 2
_OUTPUT = data.StructLayout({
    "beat": 8 * BEAT_BYTES, "place": range(WORD_BEATS), "word": 12,
})


class WordTransfers(wiring.Component):
    """Executes the `weft.language_core.descriptors.Transfer` of a pass.

    A word is one burst of WORD_BEATS beats. At most RING_WORDS words are read ahead. A word of a
    stream goes to ``main`` with its number in the lowest bits: a ring. Beats go to port B of the
    main memory in cycles in which nothing else uses it, so no buffer holds a word.

    The memory fails if it answers with an error, or if no channel moves for ``timeout`` cycles
    while a burst is open. Then the transfer ends at once, and a stream lets its product take words
    that are not valid: so each pass ends. What is still open is completed, and dropped, before the
    next transfer; that fails, too, if it does not come in time.

    Parameters
    ----------
    target : str
        As in the Config.
    timeout : int
        Cycles; a power of two.
    int4 : bool
        Words that are read may be of int4: an `Int4Unpacker` makes two beats of one.

    Attributes
    ----------
    start : In, 1 bit
        Pulse. All inputs up to ``program`` are stable from then on, until the end of the pass.
    transfer : In, `Transfer`
    further : In, 12 bits for each of two loops
        Iterations less 1.
    main, steps : In, 12 bits, 12 bits for each of two loops
        First word of the main memory, and the steps of both addresses.
    program : In, 20 bits
        First word of the program memory.
    row, row_words : In, 13 bits, 12 bits
        The program memory is read ``row * row_words`` words later.
    packed : In, 15 bits; only with ``int4``
        The beats of a tile less 1, if the words are of int4. Then a tile starts at a word of the
        program memory, ``row`` counts tiles, and no beat follows the last one of a tile.
    done : Out, 1 bit
        Pulse: a load or a store has ended.
    failed : Out, 1 bit
        The memory has failed; until the next start.
    ready : Out, 1 bit
        A word of the stream is in the main memory.
    step : In, 1 bit
        It is taken. Only with ``ready``.
    word, place, beat : Out, 12 bits, 3 bits, 128 bits
        A beat for the main memory.
    beat_valid, beat_ready : Out, In, 1 bit each
    read_word, read_data : Out 12 bits, In 1024 bits
        READ cycles later: a word that is stored.
    axi : Out, `Axi4`
    """

    def __init__(self, *, target, timeout=TRANSFER_TIMEOUT, int4=False):
        self.multiplier = FABRICS[target].multiplier
        self.timeout = timeout
        self.int4 = int4
        self._is_packed = Signal(name="is_packed")  # a register: it goes to all of the unpacker
        axi = Axi4(data_bytes=BEAT_BYTES)
        # Both ends of the read channel are far apart: nothing leads from one to the other in a
        # cycle.
        self._received = SkidBuffer(axi.members["r"].signature.members["payload"].shape)
        super().__init__({
            **({"packed": In(15)} if int4 else {}),
            "start": In(1), "transfer": In(2),
            "further": In(data.ArrayLayout(12, _LEVELS)),
            "main": In(12), "steps": In(data.ArrayLayout(12, _LEVELS)),
            "program": In(PROGRAM_BITS), "row": In(13), "row_words": In(12),
            "done": Out(1), "failed": Out(1), "ready": Out(1), "step": In(1),
            "word": Out(12), "place": Out(range(WORD_BEATS)), "beat": Out(8 * BEAT_BYTES),
            "beat_valid": Out(1), "beat_ready": In(1),
            "read_word": Out(12), "read_data": In(8 * WORD_BYTES),
            "axi": Out(axi),
        })

    def elaborate(self, platform):
        m = Module()
        if self.int4:
            m.d.sync += self._is_packed.eq(self.packed.any())
        m.submodules.received = self._received
        connect(m, flipped(self.axi.r), self._received.i)
        m.submodules.product = product = self.multiplier(a=13, b=12)
        first = Signal(PROGRAM_BITS)
        m.d.comb += [product.a.eq(self.row), product.b.eq(self._packed_or(self.row_words, 1))]
        m.d.sync += first.eq(self.program + product.product)
        started = pipeline(m, self.start, product.LATENCY + 1, "started")
        waits, begin, begun, ended = Signal(), Signal(), Signal(), Signal()
        stale = Signal()  # what is open is of a transfer that has failed
        moves = self.transfer != Transfer.STREAM  # a load or a store, which ends its pass
        store = self.transfer == Transfer.STORE
        open_, arrives, read_error = self._reads(m, first, begin & ~store, stale)
        writing, stored, write_error = self._stores(m, first, begin & store, stale)
        late = self._late(m, open_ | writing)
        loaded = pipeline(m, begun & ~store & ~arrives, ARRIVED, "loaded")
        m.d.comb += [
            begin.eq(waits & ~open_ & ~writing & ~self.failed),
            ended.eq((waits | begun) & (self.failed | loaded | stored)),
            self.done.eq(ended & moves),
        ]
        with m.If(started):
            m.d.sync += waits.eq(1)
        with m.Elif(begin | self.failed):
            m.d.sync += waits.eq(0)
        with m.If(begin):
            m.d.sync += stale.eq(0)
        with m.Elif(self.failed):
            m.d.sync += stale.eq(1)
        with m.If(begin):
            m.d.sync += begun.eq(1)
        with m.Elif(ended | self.start):
            m.d.sync += begun.eq(0)
        with m.If(self.start):
            m.d.sync += self.failed.eq(0)
        with m.Elif(read_error | write_error | late):
            m.d.sync += self.failed.eq(1)
        return m

    def _packed_or(self, value, added):
        """A number of words; of int4, those of a tile in the program memory less 1, and ``added``.
        """
        return Mux(self._is_packed, self.packed[_BEAT:] + added, value) if self.int4 else value

    def _nest(self, m, name, addresses, start, further=None):
        """The loops of a transfer, and the first one of each address.

        ``further`` are the iterations over words of the program memory, which may be of int4.
        """
        loops = LoopNest(
            levels=_LEVELS, count_bits=12,
            addresses={each: len(first) for each, first in addresses.items()},
        )
        m.submodules[name] = loops
        m.d.comb += [
            loops.start.eq(start), loops.further.eq(self.further if further is None else further),
        ]
        steps = [self.steps[0], self.steps[1]]
        if further is not None:
            steps[1] = self._packed_or(steps[1], 1)
        for each, first in addresses.items():
            m.d.comb += [
                getattr(loops, f"{each}_start").eq(first),
                *(getattr(loops, f"{each}_steps")[n].eq(steps[n]) for n in range(_LEVELS)),
            ]
        return loops

    def _reads(self, m, first, begin, stale):
        """Loads and streams: whether a burst is open, whether words will come, and an error."""
        further = None
        if self.int4:
            further = Cat(self._packed_or(self.further[0], 0)[:12], self.further[1])
        asked = self._nest(m, "asked", {"program": first}, begin, further)
        arriving = self._nest(m, "arriving", {"main": self.main}, begin)
        streams = self.transfer == Transfer.STREAM
        ar, r = self.axi.ar, self._received.o
        words = range(RING_WORDS + 1)
        ahead, open_, unread = (Signal(words, name=name) for name in ("ahead", "open", "unread"))
        free, ask = Signal(), Signal()
        reading = Signal()  # ``asked`` belongs to this transfer, not to one that has failed
        beats, fire, last, arrived = Signal(range(WORD_BEATS)), Signal(), Signal(), Signal()
        # A burst of int4 has no fixed number of words: then ``ahead`` are words of the ring.
        limited = open_ if self.int4 else ahead
        m.d.comb += [
            free.eq(~ar.valid | ar.ready),
            ask.eq(asked.busy & free & (limited != RING_WORDS) & reading & ~self.failed),
            asked.advance.eq(ask),
        ]
        with m.If(free):
            m.d.sync += [ar.valid.eq(ask), ar.payload.addr.eq(asked.program << _PLACE)]
            if self.int4:
                ends = self._is_packed & asked.last[0]
                m.d.sync += ar.payload.len.eq(Mux(ends, self.packed[:_BEAT], WORD_BEATS - 1))
        # Its ready is a register. Without it, a path leads from the users of port B, through the
        # unpacker, to the controller of the SDRAM.
        m.submodules.output = output = SkidBuffer(_OUTPUT)
        valid, ready, beat, closed, inside = (
            r.valid, r.ready, r.payload.data, last, output.o.valid
        )
        if self.int4:
            room = (ahead != RING_WORDS) | (beats != 0) | ~streams | self.failed | stale
            valid, ready, beat, held = self._unpacked(m, begin, room)
            closed, inside = r.valid & r.ready & r.payload.last, inside | held
            ahead_next = ahead + (fire & streams & (beats == 0) & ~stale) - self.step
        else:
            m.d.comb += ar.payload.len.eq(WORD_BEATS - 1)
            ahead_next = ahead + ask - Mux(streams, self.step, last)
        m.d.comb += [
            ready.eq(output.i.ready), fire.eq(valid & ready),
            last.eq(fire & (beats == WORD_BEATS - 1)), arriving.advance.eq(last),
        ]
        ring = Cat(arriving.main[:_RING], self.main[_RING:])
        m.d.comb += [
            output.i.valid.eq(valid), output.i.payload.beat.eq(beat),
            output.i.payload.place.eq(beats),
            output.i.payload.word.eq(Mux(streams, ring, arriving.main)),
            self.beat_valid.eq(output.o.valid & ~stale), self.beat.eq(output.o.payload.beat),
            self.place.eq(output.o.payload.place), self.word.eq(output.o.payload.word),
            output.o.ready.eq(self.beat_ready | stale),
        ]
        written = self.beat_valid & self.beat_ready & (self.place == WORD_BEATS - 1)
        m.d.comb += [
            arrived.eq(pipeline(m, written, ARRIVED, "arrived")),
            self.ready.eq((unread != 0) | self.failed),
        ]
        m.d.sync += [
            beats.eq(beats + fire), open_.eq(open_ + ask - closed), ahead.eq(ahead_next),
            unread.eq(unread + arrived - self.step),
        ]
        with m.If(self.start):
            m.d.sync += [ahead.eq(0), unread.eq(0), reading.eq(0)]
        with m.If(begin):
            m.d.sync += reading.eq(1)
            if self.int4:
                m.d.sync += beats.eq(0)  # what was dropped may end within a word
        opened = open_ != 0
        taken = r.valid & r.ready if self.int4 else fire
        return opened, asked.busy | opened | inside, taken & ~stale & _wrong(r)

    def _unpacked(self, m, begin, room):
        """The beats of weights of int8, as a stream, while there is ``room`` for them; and whether
        one is inside.
        """
        m.submodules.unpacker = unpacker = Int4Unpacker()
        r, ready = self._received.o, Signal(name="unpacked_ready")
        m.d.comb += [
            unpacker.start.eq(begin), unpacker.packed.eq(self._is_packed),
            unpacker.further.eq(self.further[0]),
            unpacker.i.valid.eq(r.valid), unpacker.i.payload.eq(r.payload.data),
            r.ready.eq(unpacker.i.ready), unpacker.o.ready.eq(ready & room),
        ]
        return unpacker.o.valid & room, ready, unpacker.o.payload, unpacker.busy

    def _stores(self, m, first, begin, stale):
        """Stores: whether a word is written, the pulse of the last one, and an error."""
        loops = self._nest(m, "stored", {"program": first, "main": self.main}, begin)
        aw, w, b = self.axi.aw, self.axi.w, self.axi.b
        wait, place = Signal(range(READ + 2)), Signal(range(WORD_BEATS))
        writing, stored, error = Signal(), Signal(), Signal()
        m.d.comb += [
            self.read_word.eq(loops.main),
            aw.payload.addr.eq(loops.program << _PLACE), aw.payload.len.eq(WORD_BEATS - 1),
            w.payload.strb.eq((1 << BEAT_BYTES) - 1),
        ]
        # Two registers choose a beat of a word, whose blocks are all over the chip.
        halves = data.ArrayLayout(4 * WORD_BYTES, 2)
        chosen = Signal(data.ArrayLayout(8 * BEAT_BYTES, 2), name="chosen_beats")
        word = data.View(halves, self.read_data)
        for n in range(2):
            m.d.sync += chosen[n].eq(word[n].word_select(place[:-1], 8 * BEAT_BYTES))
        with m.If(aw.ready):
            m.d.sync += aw.valid.eq(0)
        with m.FSM() as fsm:
            m.d.comb += writing.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.sync += wait.eq(READ + 1)
                with m.If(begin):
                    m.next = "READ"
            with m.State("READ"):
                m.d.sync += [wait.eq(wait - 1), aw.valid.eq(wait == 0)]
                with m.If(wait == 0):
                    m.next = "WORD"
            with m.State("WORD"):
                m.d.sync += [
                    w.valid.eq(1), w.payload.last.eq(place == WORD_BEATS - 1),
                    w.payload.data.eq(Mux(place[-1], chosen[1], chosen[0])), place.eq(place + 1),
                ]
                m.next = "BEAT"
            with m.State("BEAT"):
                with m.If(w.ready):
                    m.d.sync += w.valid.eq(0)
                    m.next = "WORD"
                    with m.If(w.payload.last):
                        m.next = "RESPONSE"
            with m.State("RESPONSE"):
                m.d.sync += wait.eq(READ + 1)
                m.d.comb += [b.ready.eq(1), error.eq(b.valid & _wrong(b))]
                with m.If(b.valid):
                    m.d.comb += [loops.advance.eq(1), stored.eq(loops.last[-1])]
                    m.next = "READ"
                    with m.If(loops.last[-1] | error | self.failed | stale):
                        m.next = "IDLE"
        return writing, stored & ~error, error

    def _late(self, m, open_):
        """A burst is open, and no channel has moved for ``timeout`` cycles."""
        waited, axi = Signal(range(self.timeout)), self.axi
        moved = Cat(
            channel.valid & channel.ready for channel in (axi.aw, axi.w, axi.b, axi.ar, axi.r)
        ).any()
        if self.int4:  # a beat that the ring has no room for is not late
            moved |= self._received.o.valid
        m.d.sync += waited.eq(Mux(open_ & ~moved & ~self.start, waited + 1, 0))
        return waited.all()


def _wrong(channel):
    """Whether a response is SLVERR or DECERR."""
    return channel.payload.resp.as_value()[1]
