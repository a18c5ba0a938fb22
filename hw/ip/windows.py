"""The windows: 32-bit words of the register space that become stream words, and back."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.hw.ip.fifo import Fifo
from weft.hw.post.sender import Result

__all__ = ["CommandWindow", "DEPTH", "JOBS", "Level", "ROOM", "ResultWindow"]

DEPTH = 512  # words of a window's queue: one block of memory
ROOM = DEPTH - Fifo.SPARE  # words that come at once at most
JOBS = 8  # that have ended and wait in the results' queue, before no more results are taken
Level = data.StructLayout({"words": 9, "some": 1, "complete": 1, "status": 2, "tag": 16})


class CommandWindow(wiring.Component):
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
        m.submodules.fifo = fifo = Fifo(width=32, depth=DEPTH, target=self.target)
        connect(m, flipped(self.i), fifo.i)
        begun = 0
        if self.bytes_in == 4:
            connect(m, fifo.o, flipped(self.commands))
        else:
            begun = self._gather(m, fifo.o)
        m.d.comb += [
            self.room.eq(fifo.room),
            self.waiting.eq(fifo.some | fifo.o.valid | self.commands.valid | begun),
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


class ResultWindow(wiring.Component):
    """Words of the result stream become words, low first; no more than one job's at once.

    What the stream says of a job with its last word is there before that word can be read. The
    word that ends an aborted or rejected job is read as zeros, and so is padding nobody wrote.

    Parameters
    ----------
    bytes_out : int
        Of the stream: at least 4.
    target : str
        That of a Config.

    Attributes
    ----------
    results : In, stream of `weft.hw.post.sender.Result`
    o : Out, stream of 32 bits
        Taken only while ``level.some``; ``valid`` follows that in a few cycles.
    level : Out, `Level`
        Words that may be taken, all of the oldest job; in the next cycle, that there are some;
        whether the job's last one is among them, and then its status and its tag.
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
            "level": Out(Level),
            "ended": Out(self.Ended),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = Fifo(width=32, depth=DEPTH, target=self.target)
        connect(m, fifo.o, flipped(self.o))
        Job = data.StructLayout({
            "end": fifo.put.shape(), "tag": 16, "status": self.level.status.shape()
        })
        m.submodules.ends = ends = Memory(shape=Job, depth=2 * JOBS, init=[])
        write, read = ends.write_port(), ends.read_port(domain="comb")
        head = Signal.like(write.addr)
        tail = Signal.like(read.addr)
        jobs = Signal(range(2 * JOBS + 1))  # whose last word is put
        ends_one = self._cut(m, fifo, jobs)

        # A job's last word is put, and what is known of the job with it.
        m.d.comb += [
            write.addr.eq(head), write.en.eq(ends_one), read.addr.eq(tail),
            write.data.end.eq(fifo.put + 1),
            write.data.tag.eq(self.ended.tag), write.data.status.eq(self.ended.status),
            self.ended.valid.eq(ends_one),
        ]
        oldest = read.data
        closed = Signal()  # the oldest job's last word is put
        takes = Signal()
        over = Signal()
        taken = Signal.like(fifo.put)
        after = Signal.like(fifo.put, init=1)  # taken, and one more
        one = self.level.words == 1
        m.d.comb += [
            closed.eq(jobs != 0),
            takes.eq(self.o.valid & self.o.ready), over.eq(takes & self.level.complete & one),
        ]
        m.d.sync += [
            head.eq(head + ends_one), tail.eq(tail + over),
            self.level.words.eq(
                Mux(closed, oldest.end, fifo.put) - Mux(takes, after, taken)
            ),
            self.level.some.eq((self.level.words != 0) & ~(one & takes)),
            self.level.complete.eq(closed & ~over),
        ]
        with m.If(takes):
            m.d.sync += [taken.eq(after), after.eq(after + 1)]
        with m.If(ends_one != over):
            m.d.sync += jobs.eq(jobs + Mux(over, -1, 1))
        with m.If(closed):
            m.d.sync += [self.level.tag.eq(oldest.tag), self.level.status.eq(oldest.status)]
        return m

    def _cut(self, m, fifo, jobs):
        """Stream words in parts, each held a cycle before it is put; whether it ends a job."""
        word, count = self.results.payload, self.bytes_out // 4
        index = Signal(ceil_log2(count))
        p_valid = Signal()
        p_last = Signal()
        p_data = Signal(32, reset_less=True)
        takes = Signal()  # a few parts may come after that for which there was room
        last = index == count - 1
        part = self.results.valid & takes
        m.d.comb += [
            self.results.ready.eq(takes & last),
            fifo.i.valid.eq(p_valid), fifo.i.payload.eq(p_data),
        ]
        m.d.sync += [
            takes.eq((fifo.room >= 8) & (jobs < JOBS)),
            p_valid.eq(part), p_last.eq(part & last & word.last),
            p_data.eq(word.data.word_select(index, 32)),
            self.ended.tag.eq(word.tag), self.ended.status.eq(word.status),
        ]
        with m.If(word.status != 0):
            m.d.sync += p_data.eq(0)
        with m.If(part):
            m.d.sync += index.eq(Mux(last, 0, index + 1))
        return p_last
