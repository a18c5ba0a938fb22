"""The windows: 32-bit words of the register space that become stream words, and back."""

from amaranth.hdl import Cat, Module, Mux, Shape, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.commands import Status
from weft.hw.output.stream_packer import Result
from weft.hw.stream.fifo import Fifo

__all__ = ["DEPTH", "ROOM", "Level", "RxFifo", "TxFifo"]

DEPTH = 512  # words of a window's queue: one block of memory
ROOM = DEPTH - 1  # words that come at once at most
STATUS = Shape.cast(Status).width
Level = data.StructLayout({"words": 9, "some": 1, "complete": 1})


class TxFifo(wiring.Component):
    """Words, low first, become words of the command stream.

    Parameters
    ----------
    bytes_in : int
        Of the stream: at least 4.
    target : str
        That of a Config.

    Attributes
    ----------
    i : In, stream of 32 bits
    room : Out
        Words that may come at once.
    commands : Out, stream of ``bytes_in`` bytes
    waiting : Out
        Whole words of the stream, or parts of one, are here.
    """

    def __init__(self, *, bytes_in, target):
        self.bytes_in = bytes_in
        self.target = target
        super().__init__({
            "i": In(stream.Signature(32)),
            "room": Out(range(ROOM + 1)),
            "commands": Out(stream.Signature(8 * bytes_in)),
            "waiting": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = Fifo(32, depth=DEPTH, target=self.target, counted=True)
        connect(m, flipped(self.i), fifo.i)
        begun = 0
        if self.bytes_in == 4:
            connect(m, fifo.o, flipped(self.commands))
        else:
            begun = self._gather(m, fifo.o)
        m.d.comb += [
            self.room.eq(~fifo.level),
            self.waiting.eq(fifo.level.any() | self.commands.valid | begun),
        ]
        return m

    def _gather(self, m, words):
        """Parts wait for the last one, and move with it to where they are on offer."""
        count = self.bytes_in // 4
        index = Signal(range(count))
        parts = Signal(32 * (count - 1), reset_less=True)
        last = index == count - 1
        free = ~self.commands.valid | self.commands.ready
        m.d.comb += words.ready.eq(~last | ~self.commands.valid)
        with m.If(free):
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
    """Words of the result stream become words, low first; of one job at a time.

    No word of a job comes in before all those of the job before are taken. The word that ends an
    aborted or rejected job is read as zeros, and so is padding nobody wrote.

    Parameters
    ----------
    bytes_out : int
        Of the stream: at least 4.
    target : str
        That of a Config.

    Attributes
    ----------
    results : In, stream of `weft.hw.output.stream_packer.Result`
    o : Out, stream of 32 bits
        Taken only while ``level.some``; ``valid`` follows that in a few cycles.
    follows : Out
        Whatever happens in this cycle, ``o`` is valid in the next.
    level : Out, `Level`
        Words that may be taken; that there are some; whether the job's last one is among them.
    ended : Out
        ``valid``, tag and status: all words of a job are here.
    """

    Ended = data.StructLayout({"valid": 1, "tag": 16, "status": 8})

    def __init__(self, *, bytes_out, target):
        self.bytes_out = bytes_out
        self.target = target
        super().__init__({
            "results": In(stream.Signature(Result(bytes_out=bytes_out))),
            "o": Out(stream.Signature(32)),
            "follows": Out(1),
            "level": Out(Level),
            "ended": Out(self.Ended),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = Fifo(32, depth=DEPTH, target=self.target, counted=True)
        connect(m, fifo.o, flipped(self.o))
        takes, one, more = Signal(), Signal(), Signal()
        over = Signal()  # the job's last word is taken
        m.d.comb += [
            takes.eq(self.o.valid & self.o.ready),
            one.eq(fifo.level == 1), more.eq(fifo.level[1:].any()),
            over.eq(takes & self.level.complete & one),
            self.follows.eq(fifo.next_valid), self.level.words.eq(fifo.level),
        ]
        m.d.sync += [
            self.level.some.eq(fifo.i.valid | more | (one & ~takes)),
            self.level.complete.eq((self.level.complete | self.ended.valid) & ~over),
        ]
        self._cut(m, fifo.i, over, full=fifo.level[3:].all())
        return m

    def _cut(self, m, parts, over, full):
        """Stream words in parts, each held a cycle before it is put; none behind a job's last."""
        word, count = self.results.payload, self.bytes_out // 4
        status = word.status[:STATUS]
        index = Signal(ceil_log2(count))
        waits = Signal()  # a few parts may come after that for which there was room
        closed = Signal()  # until the job is over
        last = index == count - 1
        part = self.results.valid & ~waits & ~closed
        ends = part & last & word.last
        m.d.comb += self.results.ready.eq(~waits & ~closed & last)
        m.d.sync += [
            waits.eq(full), closed.eq((closed | ends) & ~over),
            parts.valid.eq(part), self.ended.valid.eq(ends),
            parts.payload.eq(Mux(status.any(), 0, word.data.word_select(index, 32))),
            self.ended.tag.eq(word.tag), self.ended.status.eq(status),
        ]
        with m.If(part):
            m.d.sync += index.eq(Mux(last, 0, index + 1))
