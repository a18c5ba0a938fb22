"""The gather: units of results become beats, where memory has them, and beats bursts."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.axi import BURST

__all__ = ["Beat", "Gather", "Unit"]

BLOCK = ceil_log2(BURST)
STATUS = 2  # bits that there are


class Unit(data.StructLayout):
    """The ``part``'th unit of a word; ``addr`` is its place, and ``left`` bytes of its row are due.

    ``end`` marks all those of a job's last row.
    """

    def __init__(self, *, data_bytes, parts, longest):
        super().__init__({
            "word": 8 * data_bytes, "narrow": 1, "part": range(parts),
            "addr": 32, "left": signed(ceil_log2(longest + 1) + 1), "end": 1,
        })


class Beat(data.StructLayout):
    """A beat to write; ``addr`` of its burst, and its beats so far less one, count in the ``last``.

    ``end`` marks the last one of a job; one that is ``void`` is none, but ends a job.
    """

    def __init__(self, *, data_bytes):
        super().__init__({
            "data": 8 * data_bytes, "strb": data_bytes, "last": 1,
            "addr": 32, "count": BLOCK, "end": 1, "void": 1, "tag": 16, "status": STATUS,
        })


class Gather(wiring.Component):
    """Puts units side by side; the beat leaves in the cycle after that of its last unit.

    A burst ends with a row, and where a multiple of `BURST` beats begins. Of a row's units those
    with no byte that is due leave no trace.

    Parameters
    ----------
    units : list of int
        Bytes of a unit: of sums; and of narrow results where that is another number.
    unit : shape
        `Unit`.
    data_bytes : int

    Attributes
    ----------
    units : In, ``valid`` and a `Unit`
    cut : In
        Pulse, in a cycle without a unit: the burst under way, if there is one, and the job end.
    tag, status : In
        Of the job.
    beats : Out, ``valid`` and a `Beat`
    """

    def __init__(self, *, units, unit, data_bytes):
        self.sizes = units
        self.data_bytes = data_bytes
        super().__init__({
            "units": In(data.StructLayout({"valid": 1, "unit": unit})),
            "cut": In(1),
            "tag": In(16), "status": In(STATUS),
            "beats": Out(data.StructLayout({"valid": 1, "beat": Beat(data_bytes=data_bytes)})),
        })

    def elaborate(self, platform):
        m = Module()
        low = ceil_log2(self.data_bytes)
        unit, beat = self.units.unit, self.beats.beat
        fresh, closed = Signal(init=1), Signal(init=1)  # the next unit begins a beat, a burst
        strobes, fills, row_end = Signal(self.data_bytes), Signal(), Signal()
        counts = self.units.valid & (unit.left > 0)
        held = Signal(8 * self.data_bytes, reset_less=True)
        for narrow, size in enumerate(self.sizes):
            cut, places = ceil_log2(size), self.data_bytes // size
            place = unit.addr[cut:low]
            part = unit.word.word_select(unit.part[: ceil_log2(places)], 8 * size)
            due = Cat(unit.left > n for n in range(size))
            kind = Const(1) if len(self.sizes) == 1 else unit.narrow == narrow
            with m.If(kind):
                m.d.comb += [
                    fills.eq(place.all()), row_end.eq(unit.left <= size),
                    strobes.eq(Cat(due & (place == n).replicate(size) for n in range(places))),
                ]
            for n in range(places):
                with m.If(counts & kind & (place == n)):
                    m.d.sync += held[8 * n * size : 8 * (n + 1) * size].eq(part)
        last = row_end | (fills & unit.addr[low : low + BLOCK].all())
        m.d.comb += beat.data.eq(held)
        m.d.sync += [
            self.beats.valid.eq(counts & (fills | row_end)),
            beat.tag.eq(self.tag), beat.status.eq(0), beat.void.eq(0),
            beat.end.eq(row_end & unit.end),
        ]
        with m.If(counts):
            m.d.sync += [
                beat.strb.eq(Mux(fresh, 0, beat.strb) | strobes),
                fresh.eq(fills | row_end), beat.last.eq(last), closed.eq(last),
            ]
            with m.If(fresh):
                m.d.sync += beat.count.eq(Mux(closed, 0, beat.count + 1))
            with m.If(fresh & closed):
                m.d.sync += beat.addr.eq(unit.addr[low:] << low)
            with m.If(~last):
                m.d.sync += closed.eq(0)
        with m.If(self.cut):
            m.d.sync += [
                self.beats.valid.eq(1), beat.end.eq(1), beat.void.eq(closed), beat.last.eq(1),
                beat.status.eq(self.status),
                closed.eq(1), fresh.eq(1),
            ]
            with m.If(fresh):
                m.d.sync += [beat.strb.eq(0), beat.count.eq(beat.count + 1)]
        return m
