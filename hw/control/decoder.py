"""The command decoder: splits the command stream into jobs, loads and the words of loads."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import HEADER_BYTES, VERSION, Opcode
from weft.hw.control.headers import CommonHeader, HeaderStore, JobHeader, LoadHeader, exceeds

__all__ = ["CommandDecoder"]


class CommandDecoder(wiring.Component):
    """Collects a header, sends it out as a job or a load, and passes the words of a load.

    A job header takes one cycle for each of its words, and one cycle at the output. A load header
    takes three cycles more: they check its fields, here and in the job table. The words of a load
    pass combinationally, one a cycle.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Geometries of all that a load can fill, by `weft.commands.Region`.
    bytes_in : int
    header_bits : list of int
        The bits of each byte of a header that the `HeaderStore` keeps.

    Attributes
    ----------
    commands : In, stream of ``bytes_in`` bytes
    job : Out, stream of `JobHeader`
    load : Out, stream of `LoadHeader`
        The words of the load follow on ``words``. A load of no words, or of more words than the
        buffer holds, is an error.
    words : Out, stream of ``bytes_in`` bytes
    last : In, 1 bit
        The word on ``words`` is the last one of the load; valid with ``words.valid``.
    idle : Out, 1 bit
        No part of a command is in the decoder.
    error : Out
        Pulse: a header is no valid command; the decoder drops it.
    """

    def __init__(self, *, geometries, bytes_in, header_bits):
        self.geometries = geometries
        self.bytes_in = bytes_in
        self.header_bits = header_bits
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
        header_words = max(1, HEADER_BYTES // self.bytes_in)
        width = 8 * min(self.bytes_in, HEADER_BYTES)
        word = Signal(range(header_words))  # of the header
        m.submodules.store = store = HeaderStore(bytes_in=width // 8, bits=self.header_bits)
        header = store.header
        m.d.comb += [store.word.eq(word), store.data.eq(self.commands.payload)]
        # The header, if the word on the stream is its last one.
        complete = Cat(header[:-width], self.commands.payload[:width])
        common = CommonHeader(complete[:CommonHeader.as_shape().size])
        version_valid = common.version == VERSION
        checks = self._load_checks(LoadHeader(header))
        r_checks = Signal.like(checks)
        last_word = word == header_words - 1
        is_job, is_load = Signal(), Signal()  # is_job: only while the job is offered
        offers_load = Signal()
        # The states, a register each: the code of a state would take a LUT to decode. A load is
        # checked, decided on, and compared with the jobs in the table, which takes a cycle each.
        in_header, in_words = Signal(init=1), Signal()
        in_check, in_decide, in_conflict, in_dispatch = (
            Signal(name=name) for name in ("in_check", "in_decide", "in_conflict", "in_dispatch")
        )
        m.d.comb += [
            self.commands.ready.eq(in_header | (in_words & self.words.ready)),
            store.write.eq(in_header & self.commands.valid),
            self.idle.eq(in_header & (word == 0)),
            self.words.valid.eq(in_words & self.commands.valid),
            self.job.valid.eq(is_job),
            self.job.payload.eq(header),
            self.load.valid.eq(offers_load),
            self.load.payload.eq(header),
            self.words.payload.eq(self.commands.payload),
            self.error.eq(in_dispatch & ~is_job & ~is_load),
        ]
        with m.If(store.write):
            m.d.sync += [
                word.eq(word + 1),  # the number of words is a power of two
                is_job.eq(version_valid & (common.opcode == Opcode.JOB) & last_word),
                is_load.eq(version_valid & (common.opcode == Opcode.LOAD)),
            ]
        with m.If(in_check):
            m.d.sync += r_checks.eq(checks)
        with m.If(in_decide):
            m.d.sync += is_load.eq(is_load & r_checks.all())
        header_end = store.write & last_word
        has_job = common.opcode == Opcode.JOB
        job_end = in_dispatch & ~is_load & (self.job.ready | ~is_job)
        load_start = offers_load & self.load.ready
        load_end = self.words.valid & self.words.ready & self.last
        with m.If(job_end):
            m.d.sync += is_job.eq(0)
        m.d.sync += [
            in_header.eq((in_header & ~header_end) | job_end | load_end),
            in_check.eq(header_end & ~has_job), in_decide.eq(in_check), in_conflict.eq(in_decide),
            in_dispatch.eq(
                (header_end & has_job) | in_conflict | (in_dispatch & ~job_end & ~load_start)
            ),
            offers_load.eq((in_conflict & is_load) | (offers_load & ~self.load.ready)),
            in_words.eq(load_start | (in_words & ~load_end)),
        ]
        return m

    def _load_checks(self, load):
        """One bit for each condition that a load must meet."""
        geometries = self.geometries.values()
        max_pages = max(g.pages for g in geometries)
        max_words = max(g.words for g in geometries)
        return Cat(
            load.operand.matches(*self.geometries), load.panels.any(), load.words.any(),
            ~exceeds(load.panels, max_pages), ~exceeds(load.words, max_words),
        )
