"""The intake: bytes from the host become words of the command stream, and questions."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.frames import FRAME, MARK, FrameType
from weft.hw.serial.crc import Crc32
from weft.hw.stream.commit_fifo import CommitFifo

__all__ = ["FrameReceiver", "FrameRequest", "Nak", "RequestOp"]

_MARK = int.from_bytes(MARK, "little")
_HEAD, _TAIL = 6, 4  # bytes of a frame before its payload, but for the mark, and behind it
_READ = 4  # bytes of a READ's payload


class RequestOp(enum.Enum, shape=2):
    """What a question wants."""

    READ = 0
    ABORT = 1
    REFUSED = 2  # nothing: it had no effect


class Nak(enum.Enum, shape=2):
    """Why a frame had no effect."""

    CRC = 0
    TYPE = 1
    SIZE = 2
    ROOM = 3


class FrameRequest(data.Struct):
    """A frame that is to be answered: its sequence number, and what its kind asks for."""

    ask: RequestOp
    refusal: Nak
    sequence: 8
    address: 8
    count: 8


class _Header(data.Struct):
    """What a frame is: one of commands, what else it asks, too long, of no effect and why."""

    commands: 1
    ask: RequestOp
    long: 1
    refused: 1
    refusal: Nak


class FrameReceiver(wiring.Component):
    """Frames of at most `weft.frames.FRAME` bytes of payload, checked before they have effect.

    Words of the command stream wait in a `CommitFifo` for the frame's CRC. Only a frame whose
    sequence number follows that of the last one kept is kept: so a host that sends again what it
    has no answer to has each taken once, and in its order. After damage it looks for the next mark.

    A byte takes 17 cycles at most, whatever the core does; so bytes of a
    `weft.hw.serial.uart.UartReceiver` always find it ready. A question that comes before the last
    one was taken is dropped.

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
    question : Out, stream of `FrameRequest`
    taken : Out, stream of 8 bits
        The sequence number of the last frame of command words that was kept: as soon as there is
        room for another, and after one that was not its successor.
    """

    def __init__(self, *, bytes_in, target):
        self.bytes_in = bytes_in
        self.target = target
        super().__init__({
            "bytes": In(stream.Signature(8)),
            "broken": In(1),
            "commands": Out(stream.Signature(8 * bytes_in)),
            "question": Out(stream.Signature(FrameRequest)),
            "taken": Out(stream.Signature(8)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = CommitFifo(
            bytes_out=self.bytes_in, depth=2 * FRAME, target=self.target
        )
        m.submodules.sum = crc = Crc32()
        connect(m, queue.words, flipped(self.commands))
        window = Signal(64)  # the last eight bytes
        left = Signal(range(FRAME + 1))  # bytes to come of this part of the frame
        take, byte = Signal(), Signal(8)  # the cycle after it moved on the stream
        # A cycle late: nothing of the frame has come; more of this part is to come; a mark came.
        start, more, marked = Signal(), Signal(), Signal()
        outside, inside = Signal(), Signal()
        moves = self.bytes.valid & self.bytes.ready
        m.d.sync += [
            start.eq(outside), more.eq(left != 0), take.eq(moves), byte.eq(self.bytes.payload),
            marked.eq(take & (Cat(window[56:], byte) == _MARK)),
            self.bytes.ready.eq((start | (inside & more)) & crc.idle & ~take & ~moves),
        ]
        m.d.comb += [
            queue.value.eq(byte), queue.drop.eq(start),
            crc.byte.eq(byte), crc.take.eq(take), crc.start.eq(start), crc.counts.eq(~start),
        ]
        with m.If(take):
            m.d.sync += [window.eq(Cat(window, byte)[8:]), left.eq(left - 1)]
        sequence = Signal(8)
        full, tell, strange = self._room(m, queue, sequence)
        seen = self._judge(m, window, full)
        header = Signal.like(seen)  # as it was when it was whole

        answer = Signal()
        answers = self._answer(m, crc, header, window, sequence, answer)

        def part(following):
            """Take what is left of a part of the frame."""
            m.d.comb += inside.eq(1)
            with m.If(self.broken):
                m.next = "MARK"
            with m.Elif(~more & crc.idle):
                m.next = following

        with m.FSM():
            with m.State("MARK"):
                m.d.comb += outside.eq(1)
                m.d.sync += left.eq(_HEAD)
                with m.If(marked):
                    m.next = "HEAD"
            with m.State("HEAD"):
                part("KIND")
            with m.State("KIND"):
                m.d.sync += [
                    header.eq(seen), sequence.eq(window[24:32]), left.eq(window[32:64]),
                ]
                m.next = "SIZE"
            with m.State("SIZE"):
                m.next = "PAYLOAD"
                with m.If(header.long):
                    m.next = "END"
            with m.State("PAYLOAD"):
                m.d.comb += queue.put.eq(take & header.commands & ~header.refused & ~strange)
                with m.If(~more & crc.idle):
                    m.d.sync += left.eq(_TAIL)
                part("STATED")
            with m.State("STATED"):
                m.next = "TAIL"
            with m.State("TAIL"):
                part("SUMMED")
            with m.State("SUMMED"):
                m.next = "END"
            with m.State("END"):
                m.next = "MARK"
                with m.If(answers):
                    m.d.comb += answer.eq(1)
                with m.Elif(strange):
                    m.next = "COUNTED"
                with m.Else():
                    m.d.comb += queue.keep.eq(1)
                    m.next = "KEPT"
            with m.State("KEPT"):
                m.next = "COUNTED"
            with m.State("COUNTED"):  # from the next cycle on the queue says so
                m.d.comb += tell.eq(1)
                m.next = "MARK"
        return m

    def _judge(self, m, window, full):
        """What a header at the end of the window says, some cycles late: it stays for longer."""
        kind, size = window[16:24], window[32:64]
        seen = Signal(_Header)
        commands, reads, aborts = kinds = [
            Signal(name=f"is_{of.name.lower()}")
            for of in (FrameType.COMMANDS, FrameType.READ, FrameType.ABORT)
        ]
        long, odd, due = Signal(), Signal(), Signal()
        m.d.sync += [
            commands.eq(kind == FrameType.COMMANDS), reads.eq(kind == FrameType.READ),
            aborts.eq(kind == FrameType.ABORT), long.eq(size > FRAME),
            odd.eq((size % self.bytes_in).any()), due.eq(size == Mux(reads, _READ, 0)),
        ]
        m.d.comb += [
            seen.commands.eq(commands), seen.ask.eq(Mux(reads, RequestOp.READ, RequestOp.ABORT)),
            seen.long.eq(long), seen.refused.eq(1), seen.refusal.eq(Nak.SIZE),
        ]
        with m.If(long | (commands & odd)):
            pass
        with m.Elif(commands & full):
            m.d.comb += seen.refusal.eq(Nak.ROOM)
        with m.Elif(~Cat(kinds).any()):
            m.d.comb += seen.refusal.eq(Nak.TYPE)
        with m.Elif(commands | due):
            m.d.comb += seen.refused.eq(0)
        return seen

    def _answer(self, m, crc, header, window, sequence, answer):
        """Ask the question that a frame is, with ``answer``; whether it is one, a cycle late.

        All are but commands that are kept.
        """
        damaged, answers = Signal(), Signal()
        m.d.sync += [
            damaged.eq(~crc.match & ~header.long),
            answers.eq(~crc.match | header.refused | ~header.commands),
        ]
        with m.If(self.question.ready):
            m.d.sync += self.question.valid.eq(0)
        with m.If(answer & ~self.question.valid):
            question = self.question.payload
            m.d.sync += [
                self.question.valid.eq(1), question.sequence.eq(sequence),
                question.address.eq(window[:8]), question.count.eq(window[16:24]),
                question.ask.eq(Mux(damaged | header.refused, RequestOp.REFUSED, header.ask)),
                question.refusal.eq(Mux(damaged, Nak.CRC, header.refusal)),
            ]
        return answers

    def _room(self, m, queue, sequence):
        """Tell what was kept, as there is room for more: (there is none, tell, it is no successor).

        The last is right a cycle after the sequence number, which it is compared with.
        """
        full, tell, waits, strange = Signal(), Signal(), Signal(), Signal()
        last, following = Signal(8), Signal(8, init=1)
        m.d.sync += [full.eq(queue.used > FRAME), strange.eq(sequence != following)]
        with m.If(self.taken.ready):
            m.d.sync += self.taken.valid.eq(0)
        with m.If(waits & ~full & ~self.taken.valid):
            m.d.sync += [waits.eq(0), self.taken.valid.eq(1), self.taken.payload.eq(last)]
        with m.If(tell):
            m.d.sync += waits.eq(1)
            with m.If(~strange):
                m.d.sync += [last.eq(sequence), following.eq(sequence + 1)]
        return full, tell, strange
