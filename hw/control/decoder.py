"""The decoder: takes the command stream apart into jobs, loads and the words that loads carry."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import HEADER_BYTES, VERSION, Opcode
from weft.hw.control.headers import Common, JobHeader, LoadHeader, exceeds

__all__ = ["CommandDecoder"]


class CommandDecoder(wiring.Component):
    """Collects a header, hands it over as a job or a load, and lets a load's words through.

    A header costs its words and one cycle, the one in which it is handed over; a load's three more
    before that, in which it is looked at, here and in the job table. A load's words pass
    combinationally, one a cycle.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Of all that can be loaded, by `weft.commands.Region`.
    bytes_in : int

    Attributes
    ----------
    commands : In, stream of ``bytes_in`` bytes
    job : Out, stream of `JobHeader`
    load : Out, stream of `LoadHeader`
        Whoever takes it takes its words next. A load of nothing, or of more than fits, is an
        error.
    words : Out, stream of ``bytes_in`` bytes
    last : In
        The word that is due is the load's last.
    idle : Out
        Nothing of a command is inside.
    error : Out
        Pulse: a header was no command and is dropped.
    """

    def __init__(self, *, geometries, bytes_in):
        self.geometries = geometries
        self.bytes_in = bytes_in
        super().__init__({
            "commands": In(stream.Signature(8 * bytes_in)),
            "job": Out(stream.Signature(JobHeader)),
            "load": Out(stream.Signature(LoadHeader)),
            "words": Out(stream.Signature(8 * bytes_in)),
            "last": In(1),
            "idle": Out(1),
            "error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        words = max(1, HEADER_BYTES // self.bytes_in)
        width = 8 * min(self.bytes_in, HEADER_BYTES)
        header = Signal(8 * HEADER_BYTES)
        count = Signal(range(words))
        whole = Cat(header[:-width], self.commands.payload[:width])  # with the last word
        common = Common(whole[:Common.as_shape().size])
        known = common.version == VERSION
        load = LoadHeader(header)
        there = self.geometries.values()
        pages, lines = (max(getattr(g, of) for g in there) for of in ("pages", "words"))
        possible = Cat(
            load.operand.matches(*self.geometries), load.panels.any(), load.words.any(),
            ~exceeds(load.panels, pages), ~exceeds(load.words, lines),
        )
        r_possible = Signal.like(possible)
        r_job, r_load = Signal(), Signal()
        m.d.comb += [
            self.job.payload.eq(header),
            self.load.payload.eq(header),
            self.words.payload.eq(self.commands.payload),
        ]
        with m.FSM():
            with m.State("HEADER"):
                m.d.comb += [self.commands.ready.eq(1), self.idle.eq(count == 0)]
                with m.If(self.commands.valid):
                    m.d.sync += [
                        header.word_select(count, width).eq(self.commands.payload),
                        count.eq(count + 1),
                        r_job.eq(known & (common.opcode == Opcode.JOB)),
                        r_load.eq(known & (common.opcode == Opcode.LOAD)),
                    ]
                    with m.If(count == words - 1):
                        m.d.sync += count.eq(0)
                        m.next = "CHECK"
                        with m.If(common.opcode == Opcode.JOB):
                            m.next = "DISPATCH"
            with m.State("CHECK"):
                m.d.sync += r_possible.eq(possible)
                m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.sync += r_load.eq(r_load & r_possible.all())
                m.next = "SETTLE"
            with m.State("SETTLE"):
                m.next = "DISPATCH"
            with m.State("DISPATCH"):
                m.d.comb += [
                    self.job.valid.eq(r_job),
                    self.load.valid.eq(r_load),
                    self.error.eq(~r_job & ~r_load),
                ]
                with m.If(~r_load & (self.job.ready | ~r_job)):
                    m.next = "HEADER"
                with m.If(r_load & self.load.ready):
                    m.next = "WORDS"
            with m.State("WORDS"):
                m.d.comb += [
                    self.words.valid.eq(self.commands.valid),
                    self.commands.ready.eq(self.words.ready),
                ]
                with m.If(self.words.valid & self.words.ready & self.last):
                    m.next = "HEADER"
        return m
