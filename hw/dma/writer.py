"""The writer: beats become bursts on AXI, and their answers the ends of jobs."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.dma.axi import BURST, Axi4
from weft.hw.dma.gather import STATUS, Beat
from weft.hw.dma.queue import Queue

__all__ = ["Writer"]

BURSTS = 16  # that are not yet answered, at most
BEATS = 2 * BURSTS * BURST  # room for all of those, and for the one that is gathered
SLACK = 4  # bursts that end after there was no more room, and more


class Writer(wiring.Component):
    """A burst leaves when all its beats are there, so W never waits for them.

    Parameters
    ----------
    data_bytes : int

    Attributes
    ----------
    beats : In, ``valid`` and a `weft.hw.dma.gather.Beat`
    room : Out
        Three more may come.
    aw, w, b : as of `Axi4`
    ended : Out
        Pulse: all of a job is written and answered; with its ``tag`` and ``status``.
    error : Out
        Pulse: a burst was answered by an error.
    idle : Out
        No burst is under way.
    """

    def __init__(self, *, data_bytes):
        self.data_bytes = data_bytes
        axi = Axi4(data_bytes=data_bytes).members
        super().__init__({
            "beats": In(data.StructLayout({"valid": 1, "beat": Beat(data_bytes=data_bytes)})),
            "room": Out(1),
            **{name: axi[name] for name in ("aw", "w", "b")},
            "ended": Out(1), "tag": Out(16), "status": Out(STATUS),
            "error": Out(1),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        beat, closes = self.beats.beat, self.beats.valid & self.beats.beat.last
        aw, w, b = self.aw, self.w, self.b
        Burst = data.StructLayout({"void": 1, "end": 1, "tag": 16, "status": STATUS})
        m.submodules.words = words = Queue(shape=w.payload.shape(), depth=BEATS)
        m.submodules.starts = starts = Queue(shape=aw.payload.shape(), depth=BURSTS)
        m.submodules.bursts = bursts = Queue(shape=Burst, depth=BURSTS)
        connect(m, starts.o, flipped(aw))
        m.d.comb += [
            words.put.eq(self.beats.valid & ~beat.void),
            *(words.value[name].eq(beat[name]) for name in words.shape.members),
            starts.put.eq(closes & ~beat.void),
            starts.value.addr.eq(beat.addr), starts.value.len.eq(beat.count),
            bursts.put.eq(closes),
            *(bursts.value[name].eq(beat[name]) for name in Burst.members),
        ]

        whole = Signal(range(BEATS))  # beats in the queue of bursts that are whole
        goes, leaves = Signal(), Signal()
        m.d.comb += [
            goes.eq(~w.valid | w.ready), leaves.eq(goes & words.o.valid & whole.any()),
            words.o.ready.eq(leaves),
        ]
        m.d.sync += whole.eq(whole + Mux(starts.put, beat.count + 1, 0) - leaves)
        with m.If(goes):
            m.d.sync += [w.valid.eq(leaves), w.payload.eq(words.o.payload)]

        oldest, answered = bursts.o.payload, Signal()
        waiting = Signal(range(BURSTS + 1))  # bursts, and what is void
        m.d.comb += [
            b.ready.eq(bursts.o.valid & ~oldest.void),
            bursts.o.ready.eq(b.valid | oldest.void),
            answered.eq(bursts.o.valid & bursts.o.ready),
            self.idle.eq((waiting == 0) & ~self.beats.valid),
            self.room.eq(waiting < BURSTS - SLACK),
        ]
        m.d.sync += [
            waiting.eq(waiting + closes - answered),
            self.ended.eq(answered & oldest.end),
            self.tag.eq(oldest.tag), self.status.eq(oldest.status),
            self.error.eq(b.valid & b.ready & b.payload.resp.as_value()[1]),
        ]
        return m
