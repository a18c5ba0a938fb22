"""The scatter: words of results, a unit at a time, and where each goes in memory."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.write_combiner import Beat, Unit, WriteCombiner
from weft.hw.output.stream_packer import Result
from weft.hw.stream.fifo import Fifo

__all__ = ["SPOILT", "ResultAddressGenerator"]

FIELDS = 5  # words of a descriptor that it wants
SPOILT = 16  # bit of word 3: above those that N takes
WORDS = 512  # that wait at most: of more jobs than a core takes


class ResultAddressGenerator(wiring.Component):
    """``for tile: for row of it: for unit of the row``: a unit a cycle.

    Between rows there is a cycle more, between tiles there are six. A unit is a chunk of ``lanes``
    results, or a part of one. What pads a row is not written. A job that is ended early ends the
    burst that is under way. A job that keeps its sums has no results and is not known here; where
    it is refused, or ended early, it is told by its tag from the one that is due.

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
        Words 0, 1, 3, 8 and 9 of the descriptor of a job that has results. Bit `SPOILT` of word 3
        says that operands that were loaded before are wrong.
    spoilt : In
        Operands of the last one of those jobs are.
    results : In, stream of `weft.hw.output.stream_packer.Result`
    beats : Out, ``valid`` and a `weft.hw.dma.write_combiner.Beat`
    room : In
        There is room for four beats.
    idle : Out
        No job waits for results, and nothing is on its way.
    rests : Out
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
            "word": In(32), "take": In(1), "spoilt": In(1),
            "results": In(stream.Signature(Result(bytes_out=data_bytes))),
            "beats": Out(data.StructLayout({"valid": 1, "beat": Beat(data_bytes=data_bytes)})),
            "room": In(1),
            "idle": Out(1), "rests": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        longest = self.cols * max(self.sizes)
        m.submodules.jobs = jobs = Fifo(32, depth=WORDS, target=self.target, checked=False)
        m.submodules.gather = gather = WriteCombiner(
            units=self.units if len(set(self.units)) > 1 else self.units[:1],
            data_bytes=self.data_bytes,
            unit=Unit(
                data_bytes=self.data_bytes, parts=self.data_bytes // min(self.units),
                longest=longest,
            ),
        )
        unit, given = gather.units.unit, jobs.o.payload
        word = Signal(self.results.payload.shape(), reset_less=True)
        there, early, done = Signal(), Signal(), Signal()  # it ends its job early
        m.d.comb += [
            jobs.i.payload.eq(self.word), jobs.i.valid.eq(self.take),
            self.results.ready.eq(~there | done),
            self.beats.eq(gather.beats),
            gather.tag.eq(word.tag), gather.status.eq(word.status),
        ]
        with m.If(self.results.ready):
            m.d.sync += [
                there.eq(self.results.valid), word.eq(self.results.payload),
                early.eq(self.results.payload.last & self.results.payload.status.any()),
            ]

        field, narrow, tag = Signal(range(FIELDS)), Signal(), Signal(16, reset_less=True)
        wrong = Signal()  # operands of this job, loaded before it
        # Of C; from this tile on; of this tile; from this row on. All but the first less one.
        cols, down, across = (Signal(16, reset_less=True, name=n) for n in ("n", "down", "across"))
        width, height = Signal(range(self.cols)), Signal(range(self.rows))
        leftmost, wide, high = Signal(), Signal(), Signal()  # tiles are behind this, below it
        ends = Signal()  # the row that has ended was the tile's last
        # Of a row: units, less one, and those behind this one; bytes that count, less one, and from
        # this unit on; those from the last unit back to the first.
        units, behind = (
            Signal(range(longest // min(self.units)), name=n) for n in ("units", "behind")
        )
        most, rest = Signal(range(longest)), Signal.like(unit.most)
        back = Signal(signed(len(unit.most)))
        part, parts = Signal.like(unit.part), Signal.like(unit.part)
        across_tile = Signal(range(longest + 1))
        of = Signal(range(max(self.units) + 1))
        last_row = (height == 0) & ~wide & ~high  # of the job
        # Where the unit goes; where this tile began, and where the next row of tiles does. One sum
        # moves it; from 0 it goes wherever it is to be.
        cut = ceil_log2(min(self.units))  # bits of addresses that are 0
        at, tile, band, stride = (
            Signal(32 - cut, reset_less=True, name=n) for n in ("at", "tile", "band", "stride")
        )
        goes = Signal()
        # What chooses is in registers, so that it is not decoded anew for each bit: it is a row's
        # last unit, or a job's address; the state is NEXT, RIGHT, ON, DOWN.
        row_end, turns, to_tile, moves, to_band = (
            Signal(name=n) for n in ("row_end", "turns", "to_tile", "moves", "to_band")
        )
        small = Signal(signed(len(across_tile) + 1))
        after = at + (
            Mux(row_end, stride, 0) | Mux(to_tile, tile, 0) | Mux(to_band, band, 0)
            | small[cut:].as_signed()
        )
        with m.If(turns):
            m.d.comb += small.eq(back)
        with m.Elif(moves):
            m.d.comb += small.eq(across_tile)
        with m.Elif(~row_end & ~to_tile & ~to_band):
            m.d.comb += small.eq(of)
        with m.If(goes):
            m.d.sync += at.eq(after)
        m.d.comb += [
            unit.word.eq(word.data), unit.narrow.eq(narrow), unit.part.eq(part),
            unit.addr.eq(at << cut), unit.most.eq(rest), unit.end.eq(last_row),
        ]
        with m.Switch(narrow):
            for n, (size, share) in enumerate(zip(self.sizes, self.units, strict=True)):
                with m.Case(n):
                    m.d.comb += [
                        of.eq(share), parts.eq(self.data_bytes // share - 1),
                        across_tile.eq(self.cols * size),
                    ]
        goes_on = there & self.room
        refused = goes_on & early
        mine = ~refused | (word.tag == tag)  # the word that is at work is of this job
        m.d.comb += gather.spoilt.eq(mine & (wrong | (self.spoilt & ~jobs.o.valid)))
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [
                    self.rests.eq(~jobs.o.valid), self.idle.eq(self.rests & ~there & gather.idle),
                ]
                m.d.sync += [field.eq(0), part.eq(0), at.eq(0), row_end.eq(1), wrong.eq(0)]
                with m.If(jobs.o.valid):
                    m.next = "JOB"
                with m.Elif(refused):  # it is of a job that was to keep its sums
                    m.d.comb += [done.eq(1), gather.cut.eq(1)]
            with m.State("JOB"):
                m.d.comb += jobs.o.ready.eq(1)
                with m.If(jobs.o.valid):
                    m.d.sync += [field.eq(field + 1), stride.eq(given[cut:])]
                    with m.Switch(field):
                        with m.Case(0):
                            m.d.sync += tag.eq(given[16:])
                        with m.Case(1):
                            m.d.sync += down.eq(given[16:] - 1)
                            if len(self.sizes) > 1:
                                m.d.sync += narrow.eq((given & self.narrows).any())
                        with m.Case(2):
                            m.d.sync += [cols.eq(given), wrong.eq(given[SPOILT])]
                        with m.Case(4):  # there is the address
                            m.d.comb += goes.eq(1)
                            m.next = "BAND"
            with m.State("BAND"):
                m.d.sync += [across.eq(cols - 1), leftmost.eq(1), to_band.eq(0)]
                m.next = "TILE"
            with m.State("TILE"):
                is_wide, is_high = across >= self.cols, down >= self.rows
                m.d.sync += [
                    wide.eq(is_wide), width.eq(Mux(is_wide, self.cols - 1, across)),
                    high.eq(is_high), height.eq(Mux(is_high, self.rows - 1, down)),
                    tile.eq(at), moves.eq(0),
                ]
                m.next = "SIZES"
            with m.State("SIZES"):
                with m.Switch(narrow):
                    for n, (size, share) in enumerate(zip(self.sizes, self.units, strict=True)):
                        with m.Case(n):
                            chunk = self.lanes * size // share  # in units
                            chunks = width >> ceil_log2(self.lanes) << ceil_log2(chunk)
                            m.d.sync += [
                                units.eq(chunks | (chunk - 1)),
                                most.eq((width << ceil_log2(size)) | (size - 1)),
                                back.eq(-(chunks | (chunk - 1)) << ceil_log2(share)),
                            ]
                m.next = "ROW"
            with m.State("ROW"):
                m.d.sync += [behind.eq(units), rest.eq(most), row_end.eq(units == 0)]
                m.next = "UNIT"
            with m.State("UNIT"):
                with m.If(refused):
                    m.d.comb += [done.eq(1), gather.cut.eq(1)]
                    with m.If(mine):
                        m.next = "IDLE"
                with m.Elif(goes_on):
                    m.d.comb += [
                        gather.units.valid.eq(1), goes.eq(1),
                        done.eq((part == parts) | (row_end & last_row)),
                    ]
                    m.d.sync += [
                        behind.eq(behind - 1), rest.eq(rest - of), part.eq(Mux(done, 0, part + 1)),
                        row_end.eq(~row_end & (behind == 1)),
                    ]
                    with m.If(row_end):
                        m.d.sync += [height.eq(height - 1), ends.eq(height == 0), turns.eq(1)]
                        m.next = "NEXT"
            with m.State("NEXT"):  # where a stride on from the last unit is, back to the first
                m.d.comb += goes.eq(1)
                m.d.sync += [
                    turns.eq(0), behind.eq(units), rest.eq(most), row_end.eq(units == 0)
                ]
                m.next = "UNIT"
                with m.If(ends):
                    m.next = "SAVE"
                    with m.If(~wide & ~high):
                        m.next = "IDLE"
            with m.State("SAVE"):
                m.d.sync += [leftmost.eq(0), at.eq(0), row_end.eq(0)]
                with m.If(leftmost):
                    m.d.sync += band.eq(at)
                with m.If(wide):
                    m.d.sync += to_tile.eq(1)
                    m.next = "RIGHT"
                with m.Else():
                    m.d.sync += [down.eq(down - self.rows), to_band.eq(1)]
                    m.next = "DOWN"
            with m.State("RIGHT"):
                m.d.comb += goes.eq(1)
                m.d.sync += [across.eq(across - self.cols), to_tile.eq(0), moves.eq(1)]
                m.next = "ON"
            with m.State("ON"):
                m.d.comb += goes.eq(1)
                m.next = "TILE"
            with m.State("DOWN"):
                m.d.comb += goes.eq(1)
                m.next = "BAND"
        return m
