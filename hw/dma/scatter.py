"""The scatter: words of results, a unit at a time, and where each goes in memory."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.gather import Beat, Gather, Unit, unit_bytes
from weft.hw.post.sender import Result

__all__ = ["Scatter"]

JOBS = 32  # that wait for their results at most: more than a core takes
FIELDS = 5  # words of a descriptor that it wants


class Scatter(wiring.Component):
    """``for tile: for row of it: for unit of the row``: a unit a cycle.

    Between tiles there are three or four cycles. A unit is a chunk of ``lanes`` results, or what of
    it goes into a beat. What pads a row is not written. A job that is ended early ends the burst
    that is under way. A job that keeps its sums has no results and is not known here; where it is
    refused, or ended early, it is told by its tag from the one that is due.

    Parameters
    ----------
    rows, cols, lanes : int
        Of the Config.
    wide, narrow : int
        Bytes of a sum, and of a narrow result; 0 where there are none.
    narrows : `weft.commands.JobFlag`
        What makes results narrow.
    data_bytes : int

    Attributes
    ----------
    word, take : In
        Words 0, 1, 3, 8 and 9 of the descriptor of a job that has results.
    results : In, stream of `weft.hw.post.sender.Result`
    beats : Out, ``valid`` and a `weft.hw.dma.gather.Beat`
    room : In
        There is room for three beats.
    idle : Out
        No job waits for results.
    """

    def __init__(self, *, rows, cols, lanes, wide, narrow, narrows, data_bytes):
        self.rows = rows
        self.cols = cols
        self.lanes = lanes
        self.sizes = [wide, *([narrow] if narrow else [])]
        self.narrows = narrows
        self.data_bytes = data_bytes
        super().__init__({
            "word": In(32), "take": In(1),
            "results": In(stream.Signature(Result(bytes_out=data_bytes))),
            "beats": Out(data.StructLayout({"valid": 1, "beat": Beat(data_bytes=data_bytes)})),
            "room": In(1),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        units = [unit_bytes(s, lanes=self.lanes, data_bytes=self.data_bytes) for s in self.sizes]
        longest = self.cols * max(self.sizes)
        m.submodules.jobs = jobs = SyncFIFOBuffered(width=32, depth=FIELDS * JOBS)
        m.submodules.gather = gather = Gather(
            units=units, data_bytes=self.data_bytes,
            unit=Unit(
                data_bytes=self.data_bytes, parts=self.data_bytes // min(units), longest=longest
            ),
        )
        unit = gather.units.unit
        word, there, done = Signal(self.results.payload.shape()), Signal(), Signal()
        m.d.comb += [
            jobs.w_data.eq(self.word), jobs.w_en.eq(self.take),
            self.results.ready.eq(~there | done),
            self.beats.eq(gather.beats),
        ]
        with m.If(self.results.ready):
            m.d.sync += [there.eq(self.results.valid), word.eq(self.results.payload)]
        m.d.comb += [gather.tag.eq(word.tag), gather.status.eq(word.status)]

        field, narrow, tag = Signal(range(FIELDS)), Signal(), Signal(16)
        cols, down, across = Signal(16), Signal(16), Signal(16)  # of C; from this tile on
        # Where the next row of tiles begins, this tile, its row, the unit in it.
        band, tile, row, at, stride = (
            Signal(32, name=n) for n in ("band", "tile", "row", "at", "stride")
        )
        leftmost, wide, high = Signal(), Signal(), Signal()  # tiles are behind this, below it
        width, height = Signal(range(self.cols + 1)), Signal(range(self.rows + 1))
        length, left = Signal.like(unit.left), Signal.like(unit.left)  # bytes of a row
        # Units of a row, and those of this one behind this unit; but one.
        count, ahead = (Signal(range(max(longest // min(units), 2)), name=n) for n in ("c", "a"))
        part, parts = Signal.like(unit.part), Signal.like(unit.part)
        step, beside = Signal(32), Signal(32)
        following = row + stride
        row_end = ahead == 0
        last_row = (height == 1) & ~wide & ~high  # of the job
        end = row_end & last_row
        m.d.comb += [
            unit.word.eq(word.data), unit.narrow.eq(narrow), unit.part.eq(part),
            unit.addr.eq(at), unit.left.eq(left), unit.end.eq(last_row),
        ]
        with m.Switch(narrow):
            for n, (size, of) in enumerate(zip(self.sizes, units, strict=True)):
                with m.Case(n):
                    m.d.comb += [
                        step.eq(of), parts.eq(self.data_bytes // of - 1),
                        beside.eq(tile + self.cols * size),
                    ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(~jobs.r_rdy & ~there)
                m.d.sync += [field.eq(0), part.eq(0)]
                with m.If(jobs.r_rdy):
                    m.next = "JOB"
                with m.Elif(there & self.room):  # what a job says that keeps its sums
                    m.d.comb += [done.eq(1), gather.cut.eq(1)]
            with m.State("JOB"):
                m.d.comb += jobs.r_en.eq(1)
                with m.If(jobs.r_rdy):
                    m.d.sync += field.eq(field + 1)
                    with m.Switch(field):
                        with m.Case(0):
                            m.d.sync += tag.eq(jobs.r_data[16:])
                        with m.Case(1):
                            m.d.sync += down.eq(jobs.r_data[16:])
                            if len(units) > 1:
                                m.d.sync += narrow.eq((jobs.r_data & self.narrows).any())
                        with m.Case(2):
                            m.d.sync += cols.eq(jobs.r_data)
                        with m.Case(3):
                            m.d.sync += band.eq(jobs.r_data)
                        with m.Case(4):
                            m.d.sync += stride.eq(jobs.r_data)
                            m.next = "BAND"
            with m.State("BAND"):
                m.d.sync += [tile.eq(band), row.eq(band), across.eq(cols), leftmost.eq(1)]
                m.next = "TILE"
            with m.State("TILE"):
                is_wide, is_high = across > self.cols, down > self.rows
                m.d.sync += [
                    wide.eq(is_wide), width.eq(Mux(is_wide, self.cols, across)),
                    high.eq(is_high), height.eq(Mux(is_high, self.rows, down)),
                    at.eq(row),
                ]
                m.next = "SIZES"
            with m.State("SIZES"):
                chunks = (width + self.lanes - 1) >> ceil_log2(self.lanes)
                with m.Switch(narrow):
                    for n, (size, of) in enumerate(zip(self.sizes, units, strict=True)):
                        share = self.lanes * size // of  # units of a chunk
                        with m.Case(n):
                            for counter in (count, ahead):
                                m.d.sync += counter.eq((chunks << ceil_log2(share)) - 1)
                            for counter in (length, left):
                                m.d.sync += counter.eq(width << ceil_log2(size))
                m.next = "UNIT"
            with m.State("UNIT"):
                with m.If(there & self.room & word.last & word.status.any()):
                    m.d.comb += [done.eq(1), gather.cut.eq(1)]
                    with m.If(word.tag == tag):
                        m.next = "IDLE"
                with m.Elif(there & self.room):
                    m.d.comb += [gather.units.valid.eq(1), done.eq((part == parts) | end)]
                    m.d.sync += [
                        at.eq(at + step), left.eq(left - step), ahead.eq(ahead - 1),
                        part.eq(Mux(done, 0, part + 1)),
                    ]
                    with m.If(row_end):
                        m.d.sync += [
                            row.eq(following), at.eq(following), left.eq(length),
                            ahead.eq(count), height.eq(height - 1),
                        ]
                        with m.If(end):
                            m.next = "IDLE"
                        with m.Elif(height == 1):
                            m.next = "NEXT"
            with m.State("NEXT"):
                m.d.sync += leftmost.eq(0)
                with m.If(leftmost):
                    m.d.sync += band.eq(row)
                with m.If(wide):
                    m.d.sync += [
                        tile.eq(beside), row.eq(beside), across.eq(across - self.cols)
                    ]
                    m.next = "TILE"
                with m.Else():
                    m.d.sync += down.eq(down - self.rows)
                    m.next = "BAND"
        return m
