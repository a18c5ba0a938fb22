"""The command decoder, and the headers of commands: jobs, loads and the words of loads."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.commands import HEADER_BYTES, VERSION, Opcode, Region

__all__ = [
    "CommandDecoder", "CommonHeader", "HeaderStore", "JobHeader", "LoadHeader", "exceeds",
    "header_bits",
]

def exceeds(value, limit):
    """``value > limit``, with as few bits as possible in a carry chain.

    The bits above the length of ``limit`` are only tested for 0; for a power of two no bits are
    compared as numbers.
    """
    bits = limit.bit_length()
    power_of_two = limit.bit_count() == 1
    low = value[bits - 1] & value[:bits - 1].any() if power_of_two else value[:bits] > limit
    return value[bits:].any() | low


class CommonHeader(data.Struct):
    """The fields that every header starts with."""

    opcode: 8
    version: 8


class JobHeader(data.Struct):
    """The fields of `weft.commands.Job`, at the same bytes."""

    opcode: 8
    version: 8
    tag: 16
    flags: 16
    m: 16
    k: 32
    n: 16
    a_page: 16
    a_pitch: 16
    a_pages: 16
    b_page: 16
    b_pitch: 16
    b_pages: 16
    c_page: 16
    c_pitch: 16
    c_pages: 16


class LoadHeader(data.Struct):
    """The fields of `weft.commands.Load`, at the same bytes."""

    opcode: 8
    version: 8
    operand: 8
    flags: 8
    page: 16
    pitch: 16
    panels: 32
    words: 32
    pages: 32
    reserved: 96


def header_bits(geometries, flags) -> list[int]:
    """For each byte of a header, the number of its low bits that a core can use.

    A core with these buffers compares the other bits with 0 only, or ignores them.

    Parameters
    ----------
    geometries : dict of `weft.geometry.Operand`
        Geometries of all that a load can fill, by `weft.commands.Region`.
    flags : int
        The flags of a job that the core supports.
    """
    a, b = geometries[Region.A], geometries[Region.B]
    pages = max(g.pages for g in geometries.values())
    page = (2 * pages).bit_length()  # a page number, or the page after the last one of a span
    k = (min(a.words, b.words) * a.depth).bit_length()
    job = {
        "opcode": 8, "version": 8, "tag": 16, "flags": int(flags).bit_length(),
        "m": (a.pages * a.edge).bit_length(), "n": (b.pages * b.edge).bit_length(), "k": k,
        **{f"{x}_{field}": page for x in "abc" for field in ("page", "pitch", "pages")},
    }
    load = {
        "operand": max(geometries).bit_length(), "flags": 8, "page": page, "pitch": page,
        "panels": pages.bit_length(),
        "words": max(g.words for g in geometries.values()).bit_length(), "pages": page,
    }
    bits = [0] * HEADER_BYTES
    for header, used in ((JobHeader, job), (LoadHeader, load)):
        shape = header.as_shape()
        for name, count in used.items():
            field = shape[name]
            for n in range(field.width // 8):
                byte = field.offset // 8 + n
                bits[byte] = max(bits[byte], min(8, max(0, count - 8 * n)))
    return bits


class HeaderStore(wiring.Component):
    """Collects the words of a header, and keeps the low bits of each byte.

    One more bit of a byte is 1 if any of its higher bits is 1, and the bits above it are 0. So a
    number that is too large for the core stays too large, and a number that is not 0 stays so.

    Parameters
    ----------
    bytes_in : int
        Bytes of a word; at most as many as a header has.
    bits : list of int
        The number of low bits to keep, for each byte of the header.

    Attributes
    ----------
    write : In, 1 bit
    word : In, word number
    data : In, ``bytes_in`` bytes
    header : Out, the bits of a header
        One cycle after ``write``.
    """

    def __init__(self, *, bytes_in, bits):
        self.bytes_in = bytes_in
        self.bits = bits
        super().__init__({
            "write": In(1),
            "word": In(range(len(bits) // bytes_in)),
            "data": In(8 * bytes_in),
            "header": Out(8 * len(bits)),
        })

    def elaborate(self, platform):
        m = Module()
        kept = []
        for n, count in enumerate(self.bits):
            byte = self.data.word_select(n % self.bytes_in, 8)
            value = Cat(byte[:count], byte[count:].any()) if count < 7 else byte
            register = Signal(len(value), name=f"byte_{n}")
            with m.If(self.write & (self.word == n // self.bytes_in)):
                m.d.sync += register.eq(value)
            kept.append(Cat(register, *[0] * (8 - len(value))))
        m.d.comb += self.header.eq(Cat(kept))
        return m


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
