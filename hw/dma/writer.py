"""The writer: beats become bursts on AXI, and their answers the ends of jobs."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from weft.hw.dma.axi import Axi4
from weft.hw.dma.gather import Beat

__all__ = ["Writer"]

BURSTS = 16  # that are not yet answered, at most
BEATS = 256  # that wait at most
SLACK = 4  # beats that come after there was no more room


class Writer(wiring.Component):
    """A burst leaves when all its beats are there, so W never waits for them, nor W for AW to come.

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
            "ended": Out(1), "tag": Out(16), "status": Out(8),
            "error": Out(1),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        beat, closes = self.beats.beat, self.beats.valid & (self.beats.beat.last)
        aw, w, b = self.aw, self.w, self.b
        w_shape = w.payload.shape()
        a_shape = aw.payload.shape()
        Burst = data.StructLayout({"void": 1, "end": 1, "tag": 16, "status": 8})
        m.submodules.queue = queue = SyncFIFOBuffered(width=w_shape.size, depth=BEATS)
        m.submodules.starts = starts = SyncFIFOBuffered(width=a_shape.size, depth=BURSTS)
        m.submodules.bursts = bursts = SyncFIFOBuffered(width=Burst.size, depth=BURSTS)

        given, start, burst = Signal(w_shape), Signal(a_shape), Signal(Burst)
        for name in w_shape.members:
            m.d.comb += given[name].eq(beat[name])
        for name in Burst.members:
            m.d.comb += burst[name].eq(beat[name])
        m.d.comb += [
            start.addr.eq(beat.addr), start.len.eq(beat.count),
            queue.w_data.eq(given), queue.w_en.eq(self.beats.valid & ~beat.void),
            starts.w_data.eq(start), starts.w_en.eq(closes & ~beat.void),
            bursts.w_data.eq(burst), bursts.w_en.eq(closes),
        ]
        m.d.sync += self.room.eq(
            (queue.level < BEATS - 1 - SLACK) & (bursts.level < BURSTS - 1 - SLACK)
        )

        m.d.comb += [
            aw.valid.eq(starts.r_rdy), aw.payload.eq(starts.r_data), starts.r_en.eq(aw.ready)
        ]
        whole = Signal(range(BURSTS + 1))  # bursts in the queue
        goes, leaves = Signal(), Signal()
        head = data.View(w_shape, queue.r_data)
        m.d.comb += [
            goes.eq(~w.valid | w.ready), leaves.eq(goes & queue.r_rdy & whole.any()),
            queue.r_en.eq(leaves),
        ]
        m.d.sync += whole.eq(whole + starts.w_en - (leaves & head.last))
        with m.If(goes):
            m.d.sync += [w.valid.eq(leaves), w.payload.eq(head)]

        oldest = data.View(Burst, bursts.r_data)
        m.d.comb += [
            b.ready.eq(bursts.r_rdy & ~oldest.void),
            bursts.r_en.eq(b.valid | oldest.void),
            self.idle.eq((bursts.level == 0) & ~self.beats.valid),
        ]
        m.d.sync += [
            self.ended.eq(bursts.r_rdy & bursts.r_en & oldest.end),
            self.tag.eq(oldest.tag), self.status.eq(oldest.status),
            self.error.eq(b.valid & b.ready & b.payload.resp.as_value()[1]),
        ]
        return m
