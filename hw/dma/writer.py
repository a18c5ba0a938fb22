"""The writer: sends beats as bursts on AXI4, and reports the end of each job."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.axi import BURST, Axi4
from weft.hw.dma.write_combiner import BEAT_STATUS, Beat
from weft.hw.stream.fifo import Fifo

__all__ = ["Writer"]

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
    beats : In, ``valid`` and ``beat``, a `weft.hw.dma.write_combiner.Beat`
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
