"""The intake: bytes from the host become words of the command stream, and questions."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.frames import FRAME, MARK, FrameType
from weft.hw.bus.sums import FrameSum
from weft.hw.bus.words import WordQueue

__all__ = ["Ask", "Intake", "Question", "Refusal"]

_MARK = int.from_bytes(MARK, "little")
_HEAD, _TAIL = 6, 4  # bytes of a frame before its payload, but for the mark, and behind it
_READ = 4  # bytes of a READ's payload
_KINDS = FrameType.COMMANDS, FrameType.READ, FrameType.ABORT


class Ask(enum.Enum, shape=2):
    """What a question wants."""

    READ = 0
    ABORT = 1
    REFUSED = 2  # nothing: it had no effect


class Refusal(enum.Enum, shape=2):
    """Why a frame had no effect."""

    CRC = 0
    TYPE = 1
    SIZE = 2
    ROOM = 3


class Question(data.Struct):
    """A frame that is to be answered: its sequence number, and what its kind asks for."""

    ask: Ask
    refusal: Refusal
    sequence: 8
    address: 8
    count: 8


class Intake(wiring.Component):
    """Frames of at most `weft.frames.FRAME` bytes of payload, checked before they have effect.

    Words of the command stream wait in a `WordQueue` for the frame's CRC. After damage it looks
    for the next mark. A byte takes 14 cycles at most, whatever the core does; so bytes of a
    `weft.hw.bus.uart.Receiver` always find it ready. A question that comes before the last one
    was taken is dropped.

    Parameters
    ----------
    bytes_in : int
    target : str
        That of a Config.

    Attributes
    ----------
    bytes : In, stream of 8 bits
    broken : In
        Pulse: bytes are missing; the frame under way is none.
    commands : Out, stream of ``bytes_in`` bytes
    question : Out, stream of `Question`
    taken : Out, stream of 8 bits
        The sequence number of a frame of command words, as soon as there is room for another.
    """

    def __init__(self, *, bytes_in, target):
        self.bytes_in = bytes_in
        self.target = target
        super().__init__({
            "bytes": In(stream.Signature(8)),
            "broken": In(1),
            "commands": Out(stream.Signature(8 * bytes_in)),
            "question": Out(stream.Signature(Question)),
            "taken": Out(stream.Signature(8)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = WordQueue(
            bytes_out=self.bytes_in, depth=2 * FRAME, target=self.target
        )
        m.submodules.sum = crc = FrameSum()
        connect(m, queue.words, flipped(self.commands))
        window = Signal(64)  # the last eight bytes
        kind, number, size = window[16:24], window[24:32], window[32:64]
        left = Signal(range(FRAME + 1))  # bytes to come of this part of the frame
        sequence, commands = Signal(8), Signal()
        ask, refused, refusal = Signal(Ask), Signal(), Signal(Refusal)
        take, byte = Signal(), Signal(8)  # the cycle after it moved on the stream
        start, more = Signal(), Signal()  # of a frame; of a part of it, a cycle late
        m.d.sync += more.eq(left != 0)
        m.d.comb += [
            queue.value.eq(byte), crc.byte.eq(byte), crc.take.eq(take), crc.start.eq(start),
            crc.counts.eq(~start),
        ]
        moves, inside = self.bytes.valid & self.bytes.ready, Signal()
        m.d.sync += [
            take.eq(moves), byte.eq(self.bytes.payload),
            self.bytes.ready.eq((start | (inside & more)) & crc.idle & ~take & ~moves),
        ]
        with m.If(take):
            m.d.sync += [window.eq(Cat(window, byte)[8:]), left.eq(left - 1)]
        full, kept = self._room(m, queue, sequence)
        # Of the header, a cycle late: it is there for longer before somebody asks.
        kinds = {of: Signal(name=f"is_{of.name.lower()}") for of in _KINDS}
        m.d.sync += [flag.eq(kind == of) for of, flag in kinds.items()]
        long, odd, due = Signal(), Signal(), Signal()
        m.d.sync += [
            long.eq(size > FRAME), odd.eq((size % self.bytes_in).any()),
            due.eq(size == Mux(kinds[FrameType.READ], _READ, 0)),
        ]
        with m.If(self.question.ready):
            m.d.sync += self.question.valid.eq(0)

        def part(following):
            """Take what is left of a part of the frame."""
            m.d.comb += inside.eq(1)
            with m.If(self.broken):
                m.next = "MARK"
            with m.Elif(~more & crc.idle):
                m.next = following

        def refuse(why):
            return [refused.eq(1), ask.eq(Ask.REFUSED), refusal.eq(why)]

        def answer(ask, refusal):
            asked = Cat(ask, refusal, sequence, window[:8], window[16:24])
            with m.If(~self.question.valid):
                m.d.sync += [self.question.valid.eq(1), self.question.payload.eq(asked)]

        with m.FSM():
            with m.State("MARK"):
                m.d.comb += [start.eq(1), queue.drop.eq(1)]
                m.d.sync += [left.eq(_HEAD), refused.eq(0)]
                with m.If(take & (Cat(window[56:], byte) == _MARK)):
                    m.next = "HEAD"
            with m.State("HEAD"):
                part("KIND")
            with m.State("KIND"):
                m.d.sync += [
                    commands.eq(kinds[FrameType.COMMANDS]), sequence.eq(number), left.eq(size),
                    ask.eq(Mux(kinds[FrameType.READ], Ask.READ, Ask.ABORT)),
                ]
                with m.If(kinds[FrameType.COMMANDS]):
                    with m.If(full):
                        m.d.sync += refuse(Refusal.ROOM)
                    with m.If(odd):
                        m.d.sync += refuse(Refusal.SIZE)
                with m.Elif(~(kinds[FrameType.READ] | kinds[FrameType.ABORT])):
                    m.d.sync += refuse(Refusal.TYPE)
                with m.Elif(~due):
                    m.d.sync += refuse(Refusal.SIZE)
                with m.If(long):
                    m.d.sync += refuse(Refusal.SIZE)
                m.next = "SIZE"
            with m.State("SIZE"):
                m.next = "PAYLOAD"
                with m.If(long):
                    answer(ask, refusal)
                    m.next = "MARK"
            with m.State("PAYLOAD"):
                m.d.comb += queue.put.eq(take & commands & ~refused)
                with m.If(~more & crc.idle):
                    m.d.sync += left.eq(_TAIL)
                part("STATED")
            with m.State("STATED"):
                m.next = "TAIL"
            with m.State("TAIL"):
                part("END")
            with m.State("END"):
                m.next = "MARK"
                with m.If(~crc.match | refused | ~commands):
                    answer(Mux(crc.match, ask, Ask.REFUSED), Mux(crc.match, refusal, Refusal.CRC))
                with m.Else():
                    m.d.comb += queue.keep.eq(1)
                    m.next = "KEPT"
            with m.State("KEPT"):
                m.next = "COUNTED"
            with m.State("COUNTED"):  # from the next cycle on the queue says so
                m.d.comb += kept.eq(1)
                m.next = "MARK"
        return m

    def _room(self, m, queue, sequence):
        """Tell who asked that a frame was kept: (there is no room for one, one was kept)."""
        full, kept, waits = Signal(), Signal(), Signal()
        m.d.sync += full.eq(queue.used > FRAME)
        with m.If(self.taken.ready):
            m.d.sync += self.taken.valid.eq(0)
        with m.If(waits & ~full):
            m.d.sync += [waits.eq(0), self.taken.valid.eq(1)]
        with m.If(kept):
            m.d.sync += [waits.eq(1), self.taken.payload.eq(sequence)]
        return full, kept
