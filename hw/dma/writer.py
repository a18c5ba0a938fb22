"""The writer: combines results to blocks, and sends them as bursts on AXI4."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import mux_tree
from weft.hw.dma.axi import BURST, Axi4
from weft.hw.stream.fifo import Fifo

__all__ = ["Beat", "WriteCombiner", "WriteUnit", "Writer"]

BLOCK = ceil_log2(BURST)
CORE_STATUS = 2  # status bits that the core sets: ABORTED, REJECTED
BEAT_STATUS = 3  # ... and READ_ERROR


class WriteUnit(data.StructLayout):
    """A unit of results to write.

    ========= ==============================================================================
    word      the word of the result stream that contains the unit
    narrow    the results are narrow, which selects the size of the unit
    index     index of the unit within the word
    addr      address of the unit: a multiple of its size
    last_byte results of the row from this unit on, in bytes, less one; negative if none
    last_row  the unit belongs to the last row of its job
    ========= ==============================================================================

    Parameters
    ----------
    data_bytes : int
        Bytes of a beat, and of a word of the result stream.
    max_index : int
        Units of a word, at most.
    row_bytes : int
        Bytes of results in a row of a tile, at most.
    """

    def __init__(self, *, data_bytes, max_index, row_bytes):
        super().__init__({
            "word": 8 * data_bytes, "narrow": 1, "index": range(max_index),
            "addr": 32, "last_byte": signed(ceil_log2(row_bytes) + 1), "last_row": 1,
        })


class Beat(data.StructLayout):
    """A beat to write.

    ========== =============================================================================
    data, strb as of AXI4
    last       last beat of its burst
    addr       address of the burst
    index      index of the beat within its burst: AWLEN, in the last one
    job_last   last beat of its job
    no_data    not a beat, only the end of a job; with ``last`` and ``job_last``
    tag        tag of the job
    status     status of the job; valid with ``job_last``
    ========== =============================================================================

    Parameters
    ----------
    data_bytes : int
        Bytes of a beat.
    """

    def __init__(self, *, data_bytes):
        super().__init__({
            "data": 8 * data_bytes, "strb": data_bytes, "last": 1,
            "addr": 32, "index": BLOCK, "job_last": 1, "no_data": 1, "tag": 16,
            "status": BEAT_STATUS,
        })


class WriteCombiner(wiring.Component):
    """Collects the units of a row of a tile into beats.

    A beat leaves two cycles after its last unit came in: when it is full, or its row ends. A burst
    ends with a row, and where a block of `BURST` beats ends. Units beyond the end of the row are
    ignored. A row of 19 bytes at address 0x104, with units of 4 bytes, and beats of 16::

        unit    addr    last_byte       beat    addr    index  strb                 last
        0       0x104   18
        1       0x108   14
        2       0x10c   10         ->   0       0x100   0      1111 1111 1111 0000  0
        3       0x110   6
        4       0x114   2          ->   1       0x100   1      0000 0000 0111 1111  1

    Parameters
    ----------
    unit_sizes : list of int
        Bytes of a unit: of sums, and of narrow results if they have another size.
    unit : shape
        `WriteUnit`.
    data_bytes : int
        Bytes of a beat.

    Attributes
    ----------
    units : In, ``valid`` and ``unit``, a `WriteUnit`
    cancel : In
        1 bit; pulse, in a cycle without a unit: the job ends now, and with it the burst in
        progress, if any.
    tag : In
        Tag of the job.
    status : In
        Status of the job; valid with ``cancel``.
    operand_error : In
        1 bit; operands of the job were read with an error.
    beats : Out, ``valid`` and ``beat``, a `Beat`
    idle : Out
        1 bit; no unit and no beat is in progress.
    """

    def __init__(self, *, unit_sizes, unit, data_bytes):
        self.unit_sizes = unit_sizes
        self.data_bytes = data_bytes
        super().__init__({
            "units": In(data.StructLayout({"valid": 1, "unit": unit})),
            "cancel": In(1),
            "tag": In(16), "status": In(CORE_STATUS), "operand_error": In(1),
            "beats": Out(data.StructLayout({"valid": 1, "beat": Beat(data_bytes=data_bytes)})),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        low = ceil_log2(self.data_bytes)
        unit, beat = self.units.unit, self.beats.beat
        # First cycle: the position of the unit in its beat.
        s_valid, s_cancel, s_last_row = (Signal(name=n) for n in ("valid", "cancel", "last_row"))
        s_addr = Signal(32 - low, reset_less=True)
        s_tag, s_status = Signal(16, reset_less=True), Signal(CORE_STATUS, reset_less=True)
        s_operand_error, s_block_end = Signal(reset_less=True), Signal()
        m.d.sync += [
            s_valid.eq(self.units.valid & ~unit.last_byte[-1]), s_cancel.eq(self.cancel),
            s_last_row.eq(unit.last_row),
            s_addr.eq(unit.addr[low:]), s_tag.eq(self.tag), s_status.eq(self.status),
            s_operand_error.eq(self.operand_error),
            s_block_end.eq(unit.addr[low : low + BLOCK].all()),
        ]
        s_row_end, s_beat_end, place, share = self._select(m, low)

        # Second cycle: the unit goes into the beat.
        beat_start, burst_start = Signal(init=1), Signal(init=1)  # the unit starts a beat, a burst
        strobes = self._merge(m, s_valid, place, share)
        last = s_row_end | (s_beat_end & s_block_end)
        m.d.comb += self.idle.eq(~s_valid & ~s_cancel & ~self.beats.valid)
        m.d.sync += [
            self.beats.valid.eq((s_valid & (s_beat_end | s_row_end)) | s_cancel),
            beat.tag.eq(s_tag), beat.status.eq(Cat(Mux(s_cancel, s_status, 0), s_operand_error)),
            beat.no_data.eq(s_cancel & burst_start),
            beat.job_last.eq(s_cancel | (s_row_end & s_last_row)),
            beat.last.eq(s_cancel | last),
        ]
        with m.If(s_valid | s_cancel):
            m.d.sync += [
                beat.strb.eq(Mux(beat_start, 0, beat.strb) | Mux(s_valid, strobes, 0)),
                beat_start.eq(s_cancel | s_beat_end | s_row_end), burst_start.eq(s_cancel | last),
            ]
            with m.If(beat_start):
                m.d.sync += beat.index.eq(Mux(burst_start, 0, beat.index + 1))
            with m.If(beat_start & burst_start):
                m.d.sync += beat.addr.eq(s_addr << low)
        return m

    def _select(self, m, low):
        """Cut the unit out of its word.

        The place of a unit in a beat is the index of a *large* unit, and within that a slot. A
        small unit is copied to all slots of a large one, of which one is written.

        Returns registers: whether the unit ends its row; whether it ends its beat; the index of
        the large unit; ``share``: the copies, their byte strobes, and the slots to write.
        """
        unit = self.units.unit
        large, small = max(self.unit_sizes), min(self.unit_sizes)
        s_data = Signal(8 * large, reset_less=True)
        s_strobes = Signal(large, reset_less=True)
        s_place = Signal(range(self.data_bytes // large), reset_less=True)
        s_slots = Signal(large // small, init=-1, reset_less=True)
        s_row_end, s_beat_end = Signal(), Signal()
        large_data, large_index = Signal(8 * large), Signal.like(s_place)
        m.d.sync += s_place.eq(unit.addr[ceil_log2(large) : low])
        m.d.comb += large_data.eq(mux_tree(unit.word, large_index, 8 * large))
        for narrow, size in enumerate(self.unit_sizes):
            bits, copies = ceil_log2(size), large // size
            inner = ceil_log2(copies)
            place, more = unit.addr[bits:low], unit.last_byte[bits:].any()
            keep = Cat(1, *(more | (unit.last_byte[:bits] >= n) for n in range(1, size)))
            slots = Cat(place[:inner] == n for n in range(copies))
            with m.If((unit.narrow == narrow) | (len(self.unit_sizes) == 1)):
                m.d.comb += large_index.eq(unit.index[inner:])
                m.d.sync += [
                    s_data.eq(
                        mux_tree(large_data, unit.index[:inner], 8 * size).replicate(copies)
                    ),
                    s_strobes.eq(Cat(Mux(bit, keep, 0) for bit in slots)),
                    s_slots.eq(Cat(bit.replicate(size // small) for bit in slots)),
                    s_row_end.eq(~more), s_beat_end.eq(place.all()),
                ]
        return s_row_end, s_beat_end, s_place, (s_data, s_strobes, s_slots)

    def _merge(self, m, valid, place, share):
        """Write the unit into the data of the beat; returns its strobes."""
        unit_data, unit_strobes, slots = share
        large, small = max(self.unit_sizes), min(self.unit_sizes)
        strobes = Signal(self.data_bytes)
        beat_data = Signal(8 * self.data_bytes, reset_less=True)
        m.d.comb += self.beats.beat.data.eq(beat_data)
        for n in range(self.data_bytes // large):
            with m.If(place == n):
                m.d.comb += strobes.word_select(n, large).eq(unit_strobes)
            for slot in range(len(slots)):
                with m.If(valid & (place == n) & slots[slot]):
                    m.d.sync += beat_data.word_select(n * len(slots) + slot, 8 * small).eq(
                        unit_data.word_select(slot, 8 * small)
                    )
        return strobes


BURSTS = 16  # entries of the queue of bursts, at most
# Depth of the queue of beats, which does not check: these bursts and the one that is collected have
# at most (BURSTS + 1) * BURST beats, and a depth is a power of two.
BEATS = 2 * BURSTS * BURST
# More than the bursts that can still end after ``room`` became 0: ``room`` takes a cycle to the
# address generator, and a unit two cycles to its beat, which may end a burst.
SLACK = 4


class Writer(wiring.Component):
    """Sends a burst when all its beats have come, so W never waits for data within a burst.

    Parameters
    ----------
    data_bytes : int
        Bytes of a beat.
    target : str
        As in Config.

    Attributes
    ----------
    beats : In, ``valid`` and ``beat``, a `weft.hw.dma.writer.Beat`
    room : Out
        1 bit; four more beats can be taken.
    aw, w, b : as of `Axi4`
    job_done : Out
        1 bit; pulse: all bursts of a job have their responses.
    tag, status : Out
        16 and 4 bits; valid with ``job_done``. The highest bit of the status is set if a burst of
        the job had an error response.
    error : Out
        1 bit; pulse: a burst had an error response.
    idle : Out
        1 bit; no burst is in flight.
    """

    def __init__(self, *, data_bytes, target):
        self.data_bytes = data_bytes
        self.target = target
        axi = Axi4(data_bytes=data_bytes).members
        super().__init__({
            "beats": In(data.StructLayout({"valid": 1, "beat": Beat(data_bytes=data_bytes)})),
            "room": Out(1),
            **{name: axi[name] for name in ("aw", "w", "b")},
            "job_done": Out(1), "tag": Out(16), "status": Out(BEAT_STATUS + 1),
            "error": Out(1),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        beat, burst_end = self.beats.beat, self.beats.valid & self.beats.beat.last
        aw, b = self.aw, self.b
        low = ceil_log2(self.data_bytes)
        Start = data.StructLayout({"addr": 32 - low, "len": len(beat.index)})
        Burst = data.StructLayout({"no_data": 1, "job_last": 1, "tag": 16, "status": BEAT_STATUS})
        words, starts, bursts = (
            Fifo(shape, depth=depth, target=self.target, checked=False, commit=commit)
            for shape, depth, commit in (
                (self.w.payload.shape(), BEATS, True), (Start, 2 * BURSTS, False),
                (Burst, 2 * BURSTS, False),
            )
        )
        m.submodules.words, m.submodules.starts, m.submodules.bursts = words, starts, bursts
        m.d.comb += [
            self.w.valid.eq(words.o.valid), self.w.payload.eq(words.o.payload),
            words.o.ready.eq(self.w.ready),
            aw.valid.eq(starts.o.valid), starts.o.ready.eq(aw.ready),
            aw.payload.addr[low:].eq(starts.o.payload.addr),
            aw.payload.len.eq(starts.o.payload.len),
            words.i.valid.eq(self.beats.valid & ~beat.no_data), words.commit.eq(beat.last),
            *(words.i.payload[name].eq(beat[name]) for name in words.shape.members),
            starts.i.valid.eq(burst_end & ~beat.no_data),
            starts.i.payload.addr.eq(beat.addr[low:]), starts.i.payload.len.eq(beat.index),
            bursts.i.valid.eq(burst_end),
            *(bursts.i.payload[name].eq(beat[name]) for name in Burst.members),
        ]

        # Responses belong to the bursts in their order; an entry without data needs none.
        oldest, complete = bursts.o.payload, Signal()
        in_flight = Signal(range(BURSTS + 1))  # entries of ``bursts``
        m.d.comb += [
            b.ready.eq(bursts.o.valid & ~oldest.no_data),
            bursts.o.ready.eq(b.valid | oldest.no_data),
            complete.eq(bursts.o.valid & bursts.o.ready),
            self.idle.eq((in_flight == 0) & ~self.beats.valid),
            self.room.eq(in_flight < BURSTS - SLACK),
        ]
        with m.If(burst_end != complete):
            m.d.sync += in_flight.eq(in_flight + Mux(burst_end, 1, -1))
        error = b.valid & b.ready & b.payload.resp.as_value()[1]  # SLVERR or DECERR
        earlier_error = Signal()  # of an earlier burst of the job
        with m.If(complete):
            m.d.sync += earlier_error.eq((earlier_error | error) & ~oldest.job_last)
        m.d.sync += [
            self.job_done.eq(complete & oldest.job_last),
            self.tag.eq(oldest.tag), self.status.eq(Cat(oldest.status, earlier_error | error)),
            self.error.eq(error),
        ]
        return m
