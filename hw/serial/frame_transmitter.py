"""Frames to the host: results, and the answers to its questions."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.frames import FRAME, MARK, FrameType
from weft.hw.output.stream_packer import Result
from weft.hw.serial.crc import Crc32
from weft.hw.serial.frame_receiver import FrameRequest, Nak, RequestOp
from weft.hw.serial.payload_buffer import PayloadBuffer

__all__ = ["REASONS", "FrameTransmitter"]

REASONS = b"CRC ", b"type", b"size", b"room"  # what ERROR says, by `Nak`
_HEAD, _FACTS, _TAIL = 8, 4, 4  # bytes: a frame's header, that of results, the CRC


class Part(enum.Enum, shape=2):
    """Of a frame."""

    HEAD = 0
    BODY = 1
    TAIL = 2


class FrameTransmitter(wiring.Component):
    """One frame at a time: answers first, then frames of commands taken, then results.

    A byte takes 12 cycles at least.

    Parameters
    ----------
    bytes_out : int
    target : str
        That of a Config.

    Attributes
    ----------
    results : In, stream of `weft.hw.output.stream_packer.Result`
    question : In, stream of `weft.hw.serial.frame_receiver.FrameRequest`
    taken : In, stream of 8 bits
        Sequence numbers of command frames.
    address : Out, data : In
        Of the core's registers.
    abort : Out
        Pulse, for the core.
    bytes : Out, stream of 8 bits
    """

    def __init__(self, *, bytes_out, target):
        self.bytes_out = bytes_out
        self.target = target
        super().__init__({
            "results": In(stream.Signature(Result(bytes_out=bytes_out))),
            "question": In(stream.Signature(FrameRequest)),
            "taken": In(stream.Signature(8)),
            "address": Out(8),
            "data": In(32),
            "abort": Out(1),
            "bytes": Out(stream.Signature(8)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.gatherer = gatherer = PayloadBuffer(
            bytes_out=self.bytes_out, depth=FRAME, target=self.target
        )
        m.submodules.sum = crc = Crc32()
        connect(m, flipped(self.results), gatherer.results)
        m.d.sync += [self.abort.eq(0), gatherer.take.eq(0), gatherer.done.eq(0)]
        kind, number, length, reason = Signal(FrameType), Signal(8), Signal(32), Signal(Nak)
        part, index, left = Signal(Part), Signal(range(_HEAD)), Signal(range(1024))
        over = Signal()  # nothing is left, a cycle late
        m.d.sync += over.eq(left == 0)
        facts = Signal()  # what is due of results are the facts before them
        head = Cat(C(int.from_bytes(MARK, "little"), 8 * len(MARK)), kind, number, length)
        four, word, body = gatherer.facts.as_value(), Signal(32), Signal(8)
        text = C(int.from_bytes(b"".join(REASONS), "little"), 32 * len(REASONS))
        byte, place = self.bytes.payload, index[:2]
        m.d.comb += [
            crc.byte.eq(byte), crc.take.eq(self.bytes.valid & self.bytes.ready),
            crc.counts.eq((part == Part.BODY) | ((part == Part.HEAD) & (index >= len(MARK)))),
        ]

        with m.Switch(kind):
            with m.Case(FrameType.REGISTERS):
                m.d.sync += body.eq(word.word_select(place, 8))
            with m.Case(FrameType.ERROR):
                m.d.sync += body.eq(text.word_select(Cat(place, reason), 8))
            with m.Default():
                m.d.sync += body.eq(Mux(facts, four.word_select(place, 8), gatherer.byte))

        def following(part_, count):
            return [part.eq(part_), left.eq(count), index.eq(0)]

        with m.FSM():
            with m.State("CHOOSE"):
                m.d.comb += crc.start.eq(1)
                m.d.sync += [*following(Part.HEAD, _HEAD), facts.eq(1)]
                self._choose(m, gatherer, kind, number, length, reason)
            with m.State("PICK"):
                m.next = "OFFER"
                with m.If(over):
                    m.next = "TURN"
                with m.Switch(part):
                    with m.Case(Part.HEAD):
                        m.d.sync += byte.eq(head.word_select(index, 8))
                    with m.Case(Part.TAIL):
                        m.d.sync += byte.eq(crc.crc.word_select(place, 8))
                    with m.Default():
                        m.d.sync += byte.eq(body)
            with m.State("TURN"):
                m.next = "SETTLE"
                with m.Switch(part):
                    with m.Case(Part.HEAD):
                        m.d.sync += following(Part.BODY, length)
                    with m.Case(Part.BODY):
                        m.d.sync += following(Part.TAIL, _TAIL)
                    with m.Default():
                        m.d.sync += gatherer.done.eq(kind == FrameType.RESULTS)
                        m.next = "CHOOSE"
            with m.State("OFFER"):
                m.d.comb += self.bytes.valid.eq(1)
                with m.If(self.bytes.ready):
                    m.d.sync += [index.eq(index + 1), left.eq(left - 1)]
                    with m.If(part == Part.BODY):
                        m.d.sync += gatherer.take.eq(~facts & (kind == FrameType.RESULTS))
                        m.d.sync += facts.eq(facts & (place != _FACTS - 1))
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                with m.If(crc.idle):
                    with m.If((part == Part.BODY) & (place == 0)):
                        m.d.sync += [word.eq(self.data), self.address.eq(self.address + 1)]
                    m.next = "LOOK"
            with m.State("LOOK"):  # what is left, and what is due of a body, are known behind it
                m.next = "PICK"
        return m

    def _choose(self, m, gatherer, kind, number, length, reason):
        """Begin a frame, where there is one to be sent."""
        question = self.question.payload
        sent = Signal(8)
        with m.If(self.question.valid):
            m.d.comb += self.question.ready.eq(1)
            m.d.sync += [
                number.eq(question.sequence), reason.eq(question.refusal),
                self.address.eq(question.address),
            ]
            with m.Switch(question.ask):
                with m.Case(RequestOp.READ):
                    m.d.sync += [kind.eq(FrameType.REGISTERS), length.eq(question.count << 2)]
                with m.Case(RequestOp.ABORT):
                    m.d.sync += self.abort.eq(1)
                    m.d.sync += [kind.eq(FrameType.ABORTED), length.eq(0)]
                with m.Default():
                    m.d.sync += [kind.eq(FrameType.ERROR), length.eq(len(REASONS[0]))]
            m.next = "LOOK"
        with m.Elif(self.taken.valid):
            m.d.comb += self.taken.ready.eq(1)
            m.d.sync += [
                kind.eq(FrameType.TAKEN), number.eq(self.taken.payload), length.eq(0),
            ]
            m.next = "LOOK"
        with m.Elif(gatherer.full & ~gatherer.done):
            m.d.sync += [
                kind.eq(FrameType.RESULTS), number.eq(sent), sent.eq(sent + 1),
                length.eq(gatherer.length + _FACTS),
            ]
            m.next = "LOOK"
