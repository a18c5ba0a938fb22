"""The writer: beats become bursts on AXI, and their answers the ends of jobs."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.axi import BURST, Axi4
from weft.hw.dma.write_combiner import STATUS, Beat
from weft.hw.stream.fifo import Fifo

__all__ = ["Writer"]

BURSTS = 16  # that are not yet answered, at most
BEATS = 2 * BURSTS * BURST  # more than all of those, and the one that is gathered, have
SLACK = 4  # bursts that end after there was no more room, and more


class Writer(wiring.Component):
    """A burst leaves when all its beats are there, so W never waits for them.

    Parameters
    ----------
    data_bytes : int
    target : str
        That of a Config.

    Attributes
    ----------
    beats : In, ``valid`` and a `weft.hw.dma.write_combiner.Beat`
    room : Out
        Four more may come.
    aw, w, b : as of `Axi4`
    ended : Out
        Pulse: all of a job is written and answered; with its ``tag`` and ``status``, of which the
        highest bit says that a burst of it was answered by an error.
    error : Out
        Pulse: a burst was answered by an error.
    idle : Out
        No burst is under way.
    """

    def __init__(self, *, data_bytes, target):
        self.data_bytes = data_bytes
        self.target = target
        axi = Axi4(data_bytes=data_bytes).members
        super().__init__({
            "beats": In(data.StructLayout({"valid": 1, "beat": Beat(data_bytes=data_bytes)})),
            "room": Out(1),
            **{name: axi[name] for name in ("aw", "w", "b")},
            "ended": Out(1), "tag": Out(16), "status": Out(STATUS + 1),
            "error": Out(1),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        beat, closes = self.beats.beat, self.beats.valid & self.beats.beat.last
        aw, b = self.aw, self.b
        low = ceil_log2(self.data_bytes)
        Start = data.StructLayout({"addr": 32 - low, "len": len(beat.count)})
        Burst = data.StructLayout({"void": 1, "end": 1, "tag": 16, "status": STATUS})
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
            words.i.valid.eq(self.beats.valid & ~beat.void), words.commit.eq(beat.last),
            *(words.i.payload[name].eq(beat[name]) for name in words.shape.members),
            starts.i.valid.eq(closes & ~beat.void),
            starts.i.payload.addr.eq(beat.addr[low:]), starts.i.payload.len.eq(beat.count),
            bursts.i.valid.eq(closes),
            *(bursts.i.payload[name].eq(beat[name]) for name in Burst.members),
        ]

        oldest, answered = bursts.o.payload, Signal()
        waiting = Signal(range(BURSTS + 1))  # bursts, and what is void
        m.d.comb += [
            b.ready.eq(bursts.o.valid & ~oldest.void),
            bursts.o.ready.eq(b.valid | oldest.void),
            answered.eq(bursts.o.valid & bursts.o.ready),
            self.idle.eq((waiting == 0) & ~self.beats.valid),
            self.room.eq(waiting < BURSTS - SLACK),
        ]
        with m.If(closes != answered):
            m.d.sync += waiting.eq(waiting + Mux(closes, 1, -1))
        wrong = b.valid & b.ready & b.payload.resp.as_value()[1]
        failed = Signal()  # an earlier burst of the job was
        with m.If(answered):
            m.d.sync += failed.eq((failed | wrong) & ~oldest.end)
        m.d.sync += [
            self.ended.eq(answered & oldest.end),
            self.tag.eq(oldest.tag), self.status.eq(Cat(oldest.status, failed | wrong)),
            self.error.eq(wrong),
        ]
        return m
