"""The gather: units of results become beats, where memory has them, and beats bursts."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.mux_tree import mux_tree
from weft.hw.dma.axi import BURST

__all__ = ["Beat", "Unit", "WriteCombiner"]

BLOCK = ceil_log2(BURST)
CUT = 2  # bits of how a job may be cut off
STATUS = 3  # bits that there are before all is written


class Unit(data.StructLayout):
    """The ``part``'th unit of a word; ``addr`` is its place.

    ``most`` bytes and one of its row are due from there on: none where it is negative.
    ``end`` marks all those of a job's last row.
    """

    def __init__(self, *, data_bytes, parts, longest):
        super().__init__({
            "word": 8 * data_bytes, "narrow": 1, "part": range(parts),
            "addr": 32, "most": signed(ceil_log2(longest) + 1), "end": 1,
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


class WriteCombiner(wiring.Component):
    """Puts units side by side; a beat leaves two cycles after its last unit has come.

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
    tag : In
        Of the job.
    status : In
        Of the job, where it is cut.
    spoilt : In
        The job's operands are wrong.
    beats : Out, ``valid`` and a `Beat`
    idle : Out
        Nothing is on its way.
    """

    def __init__(self, *, units, unit, data_bytes):
        self.sizes = units
        self.data_bytes = data_bytes
        super().__init__({
            "units": In(data.StructLayout({"valid": 1, "unit": unit})),
            "cut": In(1),
            "tag": In(16), "status": In(CUT), "spoilt": In(1),
            "beats": Out(data.StructLayout({"valid": 1, "beat": Beat(data_bytes=data_bytes)})),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        low = ceil_log2(self.data_bytes)
        unit, beat = self.units.unit, self.beats.beat
        # Where a unit goes, and what of it counts. A small one is as many copies as a large one has
        # room for, one of which goes to its slot.
        widest, finest = max(self.sizes), min(self.sizes)
        valid, cut, end = (Signal(name=name) for name in ("valid", "cut", "end"))
        part = Signal(8 * widest, reset_less=True)
        due = Signal(widest, reset_less=True)
        place = Signal(range(self.data_bytes // widest), reset_less=True)
        slots = Signal(widest // finest, init=-1, reset_less=True)
        whole, which = Signal(8 * widest), Signal.like(place)
        row_end, fills, block_end = (Signal(name=n) for n in ("row_end", "fills", "block_end"))
        addr = Signal(32 - low, reset_less=True)
        tag, status = Signal(16, reset_less=True), Signal(CUT, reset_less=True)
        spoilt = Signal(reset_less=True)
        m.d.sync += [
            valid.eq(self.units.valid & ~unit.most[-1]), cut.eq(self.cut), end.eq(unit.end),
            addr.eq(unit.addr[low:]), tag.eq(self.tag), status.eq(self.status),
            spoilt.eq(self.spoilt),
            block_end.eq(unit.addr[low : low + BLOCK].all()),
            place.eq(unit.addr[ceil_log2(widest) : low]),
        ]
        m.d.comb += whole.eq(mux_tree(unit.word, which, 8 * widest))
        for narrow, size in enumerate(self.sizes):
            share, copies = ceil_log2(size), widest // size
            inner = ceil_log2(copies)
            here, more = unit.addr[share:low], unit.most[share:].any()
            counts = Cat(1, *(more | (unit.most[:share] >= n) for n in range(1, size)))
            mine = Cat(here[:inner] == n for n in range(copies))
            with m.If((unit.narrow == narrow) | (len(self.sizes) == 1)):
                m.d.comb += which.eq(unit.part[inner:])
                m.d.sync += [
                    part.eq(mux_tree(whole, unit.part[:inner], 8 * size).replicate(copies)),
                    due.eq(Cat(Mux(bit, counts, 0) for bit in mine)),
                    slots.eq(Cat(bit.replicate(size // finest) for bit in mine)),
                    row_end.eq(~more), fills.eq(here.all()),
                ]

        fresh, closed = Signal(init=1), Signal(init=1)  # the unit begins a beat, a burst
        strobes = Signal(self.data_bytes)
        held = Signal(8 * self.data_bytes, reset_less=True)
        for n in range(self.data_bytes // widest):
            with m.If(place == n):
                m.d.comb += strobes.word_select(n, widest).eq(due)
            for slot in range(len(slots)):
                with m.If(valid & (place == n) & slots[slot]):
                    m.d.sync += held.word_select(n * len(slots) + slot, 8 * finest).eq(
                        part.word_select(slot, 8 * finest)
                    )
        last = row_end | (fills & block_end)
        m.d.comb += [beat.data.eq(held), self.idle.eq(~valid & ~cut & ~self.beats.valid)]
        m.d.sync += [
            self.beats.valid.eq((valid & (fills | row_end)) | cut),
            beat.tag.eq(tag), beat.status.eq(Cat(Mux(cut, status, 0), spoilt)),
            beat.void.eq(cut & closed), beat.end.eq(cut | (row_end & end)),
            beat.last.eq(cut | last),
        ]
        with m.If(valid | cut):
            m.d.sync += [
                beat.strb.eq(Mux(fresh, 0, beat.strb) | Mux(valid, strobes, 0)),
                fresh.eq(cut | fills | row_end), closed.eq(cut | last),
            ]
            with m.If(fresh):
                m.d.sync += beat.count.eq(Mux(closed, 0, beat.count + 1))
            with m.If(fresh & closed):
                m.d.sync += beat.addr.eq(addr << low)
        return m
