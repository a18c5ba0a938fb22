"""The frame transmitter: answers, acknowledgements and results as frames to the host."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import enum, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.frames import MAX_PAYLOAD, SYNC, FrameType
from weft.hw.output.stream_packer import Result
from weft.hw.serial.crc import Crc32
from weft.hw.serial.frame_receiver import FrameRequest, Nak, RequestOp
from weft.hw.serial.payload_buffer import PayloadBuffer

__all__ = ["NAK_TEXTS", "FrameTransmitter"]

NAK_TEXTS = b"CRC ", b"type", b"size", b"room"  # payload of an ERROR frame, by `Nak`
_HEADER, _META, _CRC = 8, 4, 4  # bytes: header of a frame, tag/last/status of results, CRC


class FrameField(enum.Enum, shape=2):
    """Part of a frame."""

    HEADER = 0
    PAYLOAD = 1
    CRC = 2


class FrameTransmitter(wiring.Component):
    """Sends one frame at a time: answers to requests first, then acknowledgements, then results.

    A byte takes at least 12 cycles.

    Parameters
    ----------
    bytes_out : int
        Width of the core's result stream, in bytes.
    target : str
        FPGA family, as in the Config.

    Attributes
    ----------
    results : In, stream of `weft.hw.output.stream_packer.Result`
        The core's result stream.
    request : In, stream of `weft.hw.serial.frame_receiver.FrameRequest`
        Frames to answer.
    ack : In, stream of 8 bits
        Sequence numbers for ACK frames.
    address : Out
        Address of a core register; 8 bits.
    data : In
        Value of the register at ``address``; 32 bits.
    abort : Out
        Pulse: abort the core's current job; 1 bit.
    bytes : Out, stream of 8 bits
        Bytes to the host.
    """

    def __init__(self, *, bytes_out, target):
        self.bytes_out = bytes_out
        self.target = target
        super().__init__({
            "results": In(stream.Signature(Result(bytes_out=bytes_out))),
            "request": In(stream.Signature(FrameRequest)),
            "ack": In(stream.Signature(8)),
            "address": Out(8),
            "data": In(32),
            "abort": Out(1),
            "bytes": Out(stream.Signature(8)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = PayloadBuffer(
            bytes_out=self.bytes_out, depth=MAX_PAYLOAD, target=self.target
        )
        m.submodules.crc = crc = Crc32()
        connect(m, flipped(self.results), buffer.results)
        m.d.sync += [self.abort.eq(0), buffer.advance.eq(0), buffer.clear.eq(0)]
        frame_type, sequence, length, nak = Signal(FrameType), Signal(8), Signal(32), Signal(Nak)
        # The current field, and in it the index of the current byte and the bytes not yet sent.
        field, index, remaining = Signal(FrameField), Signal(range(_HEADER)), Signal(range(1024))
        field_end = Signal()  # remaining is 0; registered
        m.d.sync += field_end.eq(remaining == 0)
        in_meta = Signal()  # the current byte of a RESULTS payload belongs to buffer.meta
        header = Cat(C(int.from_bytes(SYNC, "little"), 8 * len(SYNC)), frame_type, sequence, length)
        byte, offset = self.bytes.payload, index[:2]
        m.d.comb += [
            crc.data.eq(byte), crc.valid.eq(self.bytes.valid & self.bytes.ready),
            crc.include.eq(
                (field == FrameField.PAYLOAD)
                | ((field == FrameField.HEADER) & (index >= len(SYNC)))
            ),
        ]
        word = Signal(32)  # a register's value, for REGISTERS
        payload_byte = self._payload_byte(m, buffer, frame_type, nak, word, in_meta, offset)

        def start_field(next_field, count):
            return [field.eq(next_field), remaining.eq(count), index.eq(0)]

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += crc.start.eq(1)
                m.d.sync += [*start_field(FrameField.HEADER, _HEADER), in_meta.eq(1)]
                self._select_frame(m, buffer, frame_type, sequence, length, nak)
            with m.State("SELECT"):
                m.next = "SEND"
                with m.If(field_end):
                    m.next = "NEXT_FIELD"
                with m.Switch(field):
                    with m.Case(FrameField.HEADER):
                        m.d.sync += byte.eq(header.word_select(index, 8))
                    with m.Case(FrameField.CRC):
                        m.d.sync += byte.eq(crc.crc.word_select(offset, 8))
                    with m.Default():
                        m.d.sync += byte.eq(payload_byte)
            with m.State("NEXT_FIELD"):
                m.next = "WAIT_CRC"
                with m.Switch(field):
                    with m.Case(FrameField.HEADER):
                        m.d.sync += start_field(FrameField.PAYLOAD, length)
                    with m.Case(FrameField.PAYLOAD):
                        m.d.sync += start_field(FrameField.CRC, _CRC)
                    with m.Default():
                        m.d.sync += buffer.clear.eq(frame_type == FrameType.RESULTS)
                        m.next = "IDLE"
            with m.State("SEND"):
                m.d.comb += self.bytes.valid.eq(1)
                with m.If(self.bytes.ready):
                    m.d.sync += [index.eq(index + 1), remaining.eq(remaining - 1)]
                    with m.If(field == FrameField.PAYLOAD):
                        m.d.sync += buffer.advance.eq(~in_meta & (frame_type == FrameType.RESULTS))
                        m.d.sync += in_meta.eq(in_meta & (offset != _META - 1))
                    m.next = "WAIT_CRC"
            with m.State("WAIT_CRC"):
                with m.If(crc.idle):
                    with m.If((field == FrameField.PAYLOAD) & (offset == 0)):
                        m.d.sync += [word.eq(self.data), self.address.eq(self.address + 1)]
                    m.next = "WAIT_DATA"
            with m.State("WAIT_DATA"):  # field_end and payload_byte are valid in the next cycle
                m.next = "SELECT"
        return m

    def _payload_byte(self, m, buffer, frame_type, nak, word, in_meta, offset):
        """The current byte of the payload; registered."""
        payload_byte = Signal(8)
        texts = C(int.from_bytes(b"".join(NAK_TEXTS), "little"), 32 * len(NAK_TEXTS))
        meta = buffer.meta.as_value()
        with m.Switch(frame_type):
            with m.Case(FrameType.REGISTERS):
                m.d.sync += payload_byte.eq(word.word_select(offset, 8))
            with m.Case(FrameType.ERROR):
                m.d.sync += payload_byte.eq(texts.word_select(Cat(offset, nak), 8))
            with m.Default():
                m.d.sync += payload_byte.eq(
                    Mux(in_meta, meta.word_select(offset, 8), buffer.byte)
                )
        return payload_byte

    def _select_frame(self, m, buffer, frame_type, sequence, length, nak):
        """Start the next frame, if one is waiting."""
        request = self.request.payload
        result_sequence = Signal(8)
        with m.If(self.request.valid):
            m.d.comb += self.request.ready.eq(1)
            m.d.sync += [
                sequence.eq(request.sequence), nak.eq(request.nak),
                self.address.eq(request.address),
            ]
            with m.Switch(request.op):
                with m.Case(RequestOp.READ):
                    m.d.sync += [
                        frame_type.eq(FrameType.REGISTERS), length.eq(request.count << 2),
                    ]
                with m.Case(RequestOp.ABORT):
                    m.d.sync += self.abort.eq(1)
                    m.d.sync += [frame_type.eq(FrameType.ABORTED), length.eq(0)]
                with m.Default():
                    m.d.sync += [frame_type.eq(FrameType.ERROR), length.eq(len(NAK_TEXTS[0]))]
            m.next = "WAIT_DATA"
        with m.Elif(self.ack.valid):
            m.d.comb += self.ack.ready.eq(1)
            m.d.sync += [
                frame_type.eq(FrameType.ACK), sequence.eq(self.ack.payload), length.eq(0),
            ]
            m.next = "WAIT_DATA"
        with m.Elif(buffer.full & ~buffer.clear):
            m.d.sync += [
                frame_type.eq(FrameType.RESULTS), sequence.eq(result_sequence),
                result_sequence.eq(result_sequence + 1), length.eq(buffer.length + _META),
            ]
            m.next = "WAIT_DATA"
