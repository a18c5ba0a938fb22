"""The FIFO ports: 32-bit words of the register space become stream words, and the reverse."""

from amaranth.hdl import Cat, Module, Mux, Shape, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.commands import Status
from weft.hw.output.stream_packer import Result
from weft.hw.stream.fifo import Fifo

__all__ = ["CAPACITY", "DEPTH", "JobDone", "Level", "RxFifo", "TxFifo"]


# `tag` and `status` are valid with `valid`, a pulse.
JobDone = data.StructLayout({"valid": 1, "tag": 16, "status": 8})


DEPTH = 512  # words of a FIFO's memory: one block RAM
CAPACITY = DEPTH - 1  # words that a FIFO holds
STATUS = Shape.cast(Status).width
Level = data.StructLayout({"words": 9, "nonempty": 1, "complete": 1})


class TxFifo(wiring.Component):
    """Packs 32-bit words, the lowest one first, into words of the command stream.

    Parameters
    ----------
    bytes_in : int
        Bytes of a stream word, at least 4.
    target : str
        Target of the Config.

    Attributes
    ----------
    i : In, stream of 32 bits
    free : Out, ``range(CAPACITY + 1)``
        Number of words that the FIFO has space for.
    commands : Out, stream of ``8 * bytes_in`` bits
    nonempty : Out, 1 bit
        A word, or a part of a stream word, has not left.
    """

    def __init__(self, *, bytes_in, target):
        self.bytes_in = bytes_in
        self.target = target
        super().__init__({
            "i": In(stream.Signature(32)),
            "free": Out(range(CAPACITY + 1)),
            "commands": Out(stream.Signature(8 * bytes_in)),
            "nonempty": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = Fifo(32, depth=DEPTH, target=self.target, counted=True)
        connect(m, flipped(self.i), fifo.i)
        partial = 0
        if self.bytes_in == 4:
            connect(m, fifo.o, flipped(self.commands))
        else:
            partial = self._pack(m, fifo.o)
        m.d.comb += [
            self.free.eq(~fifo.level),
            self.nonempty.eq(fifo.level.any() | self.commands.valid | partial),
        ]
        return m

    def _pack(self, m, words):
        """Collects the parts of a stream word; returns whether some of them are collected."""
        count = self.bytes_in // 4
        index = Signal(range(count))
        parts = Signal(32 * (count - 1), reset_less=True)
        last = index == count - 1
        m.d.comb += words.ready.eq(~last | ~self.commands.valid)
        with m.If(~self.commands.valid | self.commands.ready):
            m.d.sync += self.commands.valid.eq(0)
        with m.If(words.valid & words.ready):
            m.d.sync += [index.eq(index + 1), parts.eq(Cat(parts, words.payload)[32:])]
            with m.If(last):
                m.d.sync += [
                    self.commands.valid.eq(1),
                    self.commands.payload.eq(Cat(parts, words.payload)),
                ]
        return index.any()


class RxFifo(wiring.Component):
    """Splits words of the result stream into 32-bit words, the lowest one first.

    The FIFO holds words of one job at a time: the next job enters when the last word of the
    previous one was taken. The last word of an aborted or rejected job, and padding that was
    never written, read as zeros.

    Parameters
    ----------
    bytes_out : int
        Bytes of a stream word, at least 4.
    target : str
        Target of the Config.

    Attributes
    ----------
    results : In, stream of `weft.hw.output.stream_packer.Result`
    o : Out, stream of 32 bits
        ``ready`` only while ``level.nonempty``; ``valid`` follows that within a few cycles.
    next_valid : Out, 1 bit
        ``o`` is valid in the next cycle, whether its word is taken in this one or not.
    level : Out, `Level`
        ``words``: number of words; ``nonempty``: a word may be taken; ``complete``: the last word
        of the job is in the FIFO.
    job_done : Out, `weft.hw.bus.fifo_ports.JobDone`
        All words of a job are in the FIFO.
    """

    def __init__(self, *, bytes_out, target):
        self.bytes_out = bytes_out
        self.target = target
        super().__init__({
            "results": In(stream.Signature(Result(bytes_out=bytes_out))),
            "o": Out(stream.Signature(32)),
            "next_valid": Out(1),
            "level": Out(Level),
            "job_done": Out(JobDone),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = Fifo(32, depth=DEPTH, target=self.target, counted=True)
        connect(m, fifo.o, flipped(self.o))
        take, one, more = Signal(), Signal(), Signal()
        drained = Signal()  # the last word of the job is taken
        m.d.comb += [
            take.eq(self.o.valid & self.o.ready),
            one.eq(fifo.level == 1), more.eq(fifo.level[1:].any()),
            drained.eq(take & self.level.complete & one),
            self.next_valid.eq(fifo.next_valid), self.level.words.eq(fifo.level),
        ]
        m.d.sync += [
            self.level.nonempty.eq(fifo.i.valid | more | (one & ~take)),
            self.level.complete.eq((self.level.complete | self.job_done.valid) & ~drained),
        ]
        self._split(m, fifo.i, drained, almost_full=fifo.level[3:].all())
        return m

    def _split(self, m, parts, drained, almost_full):
        """Sends stream words as ``parts``, one cycle late; stops behind the last one of a job."""
        word, count = self.results.payload, self.bytes_out // 4
        status = word.status[:STATUS]
        index = Signal(ceil_log2(count))
        full = Signal()  # registered, so it leaves space for the parts already under way
        closed = Signal()  # from the last part of a job until the FIFO is drained
        last = index == count - 1
        part = self.results.valid & ~full & ~closed
        job_last = part & last & word.last
        m.d.comb += self.results.ready.eq(~full & ~closed & last)
        m.d.sync += [
            full.eq(almost_full), closed.eq((closed | job_last) & ~drained),
            parts.valid.eq(part), self.job_done.valid.eq(job_last),
            parts.payload.eq(Mux(status.any(), 0, word.data.word_select(index, 32))),
            self.job_done.tag.eq(word.tag), self.job_done.status.eq(status),
        ]
        with m.If(part):
            m.d.sync += index.eq(Mux(last, 0, index + 1))
