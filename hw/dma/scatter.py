"""The scatter: words of results, a unit at a time, and where each goes in memory."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.gather import Beat, Gather, Unit
from weft.hw.dma.queue import Queue
from weft.hw.post.sender import Result

__all__ = ["Scatter"]

FIELDS = 5  # words of a descriptor that it wants
AFTER, GIVEN, TILE, BAND = range(4)  # what the next row's address is
WORDS = 512  # that wait at most: of more jobs than a core takes


class Scatter(wiring.Component):
    """``for tile: for row of it: for unit of the row``: a unit a cycle.

    Between tiles there are five cycles. A unit is a chunk of ``lanes`` results, or a part
    of one. What pads a row is not written. A job that is ended early ends the burst
    that is under way. A job that keeps its sums has no results and is not known here; where it is
    refused, or ended early, it is told by its tag from the one that is due.

    Parameters
    ----------
    rows, cols, lanes : int
        Of the Config.
    sizes, units : list of int
        Bytes of a sum, and of a narrow result if there are any; and of the units of each.
    narrows : `weft.commands.JobFlag`
        What makes results narrow.
    data_bytes : int
    target : str
        That of a Config.

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

    def __init__(self, *, rows, cols, lanes, sizes, units, narrows, data_bytes, target):
        self.rows = rows
        self.cols = cols
        self.lanes = lanes
        self.sizes = sizes
        self.units = units
        self.narrows = narrows
        self.data_bytes = data_bytes
        self.target = target
        super().__init__({
            "word": In(32), "take": In(1),
            "results": In(stream.Signature(Result(bytes_out=data_bytes))),
            "beats": Out(data.StructLayout({"valid": 1, "beat": Beat(data_bytes=data_bytes)})),
            "room": In(1),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        longest = self.cols * max(self.sizes)
        m.submodules.jobs = jobs = Queue(shape=32, depth=WORDS, target=self.target)
        m.submodules.gather = gather = Gather(
            units=self.units if len(set(self.units)) > 1 else self.units[:1],
            data_bytes=self.data_bytes,
            unit=Unit(
                data_bytes=self.data_bytes, parts=self.data_bytes // min(self.units),
                longest=longest,
            ),
        )
        unit = gather.units.unit
        word = Signal(self.results.payload.shape(), reset_less=True)
        there, done = Signal(), Signal()
        m.d.comb += [
            jobs.value.eq(self.word), jobs.put.eq(self.take),
            self.results.ready.eq(~there | done),
            self.beats.eq(gather.beats),
            gather.tag.eq(word.tag), gather.status.eq(word.status),
        ]
        with m.If(self.results.ready):
            m.d.sync += [there.eq(self.results.valid), word.eq(self.results.payload)]

        field, narrow, tag = Signal(range(FIELDS)), Signal(), Signal(16, reset_less=True)
        # Of C; from this tile on; of this tile; from this row on.
        cols, down, across = (Signal(16, reset_less=True, name=n) for n in ("n", "down", "across"))
        width, height = Signal(range(self.cols + 1)), Signal(range(self.rows + 1))
        leftmost, wide, high = Signal(), Signal(), Signal()  # tiles are behind this, below it
        # Where the next row of tiles begins, this tile, its row.
        band, tile, row, stride = (
            Signal(32, name=n, reset_less=True) for n in ("band", "tile", "row", "stride")
        )
        # Bytes of the row: before this unit, before its last one; those that count, less one.
        offset, last, most = (Signal(range(longest), name=n) for n in ("o", "last", "most"))
        part, parts = Signal.like(unit.part), Signal.like(unit.part)
        across_tile = Signal(range(longest + 1))
        of = Signal(range(max(self.units) + 1))
        last_row = (height == 1) & ~wide & ~high  # of the job
        row_end = offset == last
        # Where rows begin. What chooses is in registers of its own, so that it is not decoded anew
        # for each bit.
        choice, goes, steps = Signal(2), Signal(), Signal()  # steps: as the state UNIT
        fixed = Signal(range(longest + 1))
        given, arrived = Signal(32, reset_less=True), Signal()  # the word after the memory's
        after = row + (Mux(steps, stride, 0) | fixed)
        with m.If(goes):
            m.d.sync += row.eq(Mux(
                choice[1], Mux(choice[0], band, tile), Mux(choice[0], given, after)
            ))
        m.d.comb += [
            unit.word.eq(word.data), unit.narrow.eq(narrow), unit.part.eq(part),
            unit.addr.eq(row + offset), unit.most.eq(most - offset), unit.end.eq(last_row),
        ]
        with m.Switch(narrow):
            for n, (size, share) in enumerate(zip(self.sizes, self.units, strict=True)):
                with m.Case(n):
                    m.d.comb += [
                        of.eq(share), parts.eq(self.data_bytes // share - 1),
                        across_tile.eq(self.cols * size),
                    ]
        refused = there & self.room & word.last & word.status.any()
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(~jobs.o.valid & ~there & gather.idle)
                m.d.sync += [field.eq(0), part.eq(0), choice.eq(GIVEN)]
                with m.If(jobs.o.valid):
                    m.next = "JOB"
                with m.Elif(refused):  # it is of a job that was to keep its sums
                    m.d.comb += [done.eq(1), gather.cut.eq(1)]
            with m.State("JOB"):
                m.d.comb += jobs.o.ready.eq(~arrived)
                m.d.sync += [given.eq(jobs.o.payload), arrived.eq(jobs.o.valid & jobs.o.ready)]
                with m.If(arrived):
                    m.d.sync += field.eq(field + 1)
                    with m.Switch(field):
                        with m.Case(0):
                            m.d.sync += tag.eq(given[16:])
                        with m.Case(1):
                            m.d.sync += down.eq(given[16:])
                            if len(self.sizes) > 1:
                                m.d.sync += narrow.eq((given & self.narrows).any())
                        with m.Case(2):
                            m.d.sync += cols.eq(given)
                        with m.Case(3):
                            m.d.comb += goes.eq(1)
                        with m.Case(4):
                            m.d.sync += [stride.eq(given), choice.eq(AFTER)]
                            m.next = "BAND"
            with m.State("BAND"):
                m.d.sync += [across.eq(cols), leftmost.eq(1)]
                m.next = "TILE"
            with m.State("TILE"):
                is_wide, is_high = across > self.cols, down > self.rows
                m.d.sync += [
                    wide.eq(is_wide), width.eq(Mux(is_wide, self.cols, across)),
                    high.eq(is_high), height.eq(Mux(is_high, self.rows, down)),
                    tile.eq(row),
                ]
                m.next = "SIZES"
            with m.State("SIZES"):
                chunks = (width + self.lanes - 1) >> ceil_log2(self.lanes)
                m.d.sync += offset.eq(0)
                with m.Switch(narrow):
                    for n, (size, share) in enumerate(zip(self.sizes, self.units, strict=True)):
                        with m.Case(n):
                            m.d.sync += [
                                last.eq((chunks << ceil_log2(self.lanes * size)) - share),
                                most.eq((width << ceil_log2(size)) - 1),
                            ]
                m.d.sync += steps.eq(1)
                m.next = "UNIT"
            with m.State("UNIT"):
                with m.If(refused):
                    m.d.comb += [done.eq(1), gather.cut.eq(1)]
                    with m.If(word.tag == tag):
                        m.d.sync += steps.eq(0)
                        m.next = "IDLE"
                with m.Elif(there & self.room):
                    m.d.comb += [
                        gather.units.valid.eq(1),
                        done.eq((part == parts) | (row_end & last_row)),
                    ]
                    m.d.sync += [offset.eq(offset + of), part.eq(Mux(done, 0, part + 1))]
                    with m.If(row_end):
                        m.d.comb += goes.eq(1)
                        m.d.sync += [offset.eq(0), height.eq(height - 1)]
                        with m.If(height == 1):
                            m.d.sync += steps.eq(0)
                            m.next = "SAVE"
                            with m.If(last_row):
                                m.next = "IDLE"
            with m.State("SAVE"):
                m.d.sync += leftmost.eq(0)
                with m.If(leftmost):
                    m.d.sync += band.eq(row)
                with m.If(wide):
                    m.d.sync += choice.eq(TILE)
                    m.next = "TOP"
                with m.Else():
                    m.d.sync += [choice.eq(BAND), down.eq(down - self.rows)]
                    m.next = "DOWN"
            with m.State("TOP"):
                m.d.comb += goes.eq(1)
                m.d.sync += choice.eq(AFTER)
                m.next = "RIGHT"
            with m.State("RIGHT"):
                m.d.comb += [goes.eq(1), fixed.eq(across_tile)]
                m.d.sync += across.eq(across - self.cols)
                m.next = "TILE"
            with m.State("DOWN"):
                m.d.comb += goes.eq(1)
                m.d.sync += choice.eq(AFTER)
                m.next = "BAND"
        return m
