"""The frame sender: puts a header, a payload and a CRC around the bytes of an answer."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.frames import SYNC, FrameType
from weft.hw.serial.crc import ByteCrc32, Crc32

__all__ = ["FrameHeader", "FrameSender"]

_HEADER, _CRC = 8, 4  # bytes of a frame: header with SYNC, CRC


class FrameHeader(data.Struct):
    """The header of a frame to the host; ``length`` is the size of the payload in bytes."""

    type: FrameType
    sequence: 8
    length: 11


class _Field(enum.Enum, shape=2):
    """Part of a frame."""

    HEADER = 0
    PAYLOAD = 1
    CRC = 2


class FrameSender(wiring.Component):
    """Sends one frame at a time. A byte takes at least 12 cycles.

    A ``fast`` sender sends a byte of a payload each cycle, but the last ones; other bytes take 5
    cycles.

    Parameters
    ----------
    fast : bool
    holds_header : bool
        Registers hold the header of a frame. Otherwise the frame is accepted when its header was
        sent.

    Attributes
    ----------
    frame : In, stream of `FrameHeader`
        The next frame; accepted when the frame before it has been sent.
    payload : In, stream of 8 bits
        The bytes of the payloads.
    done : Out
        Pulse: the last byte of a frame was accepted; 1 bit.
    bytes : Out, stream of 8 bits
        Bytes to the host.
    """

    frame: In(stream.Signature(FrameHeader))
    payload: In(stream.Signature(8))
    done: Out(1)
    bytes: Out(stream.Signature(8))

    def __init__(self, *, fast=False, holds_header=True):
        self.fast = fast
        self.holds_header = holds_header
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = ByteCrc32() if self.fast else Crc32()
        frame = Signal(FrameHeader) if self.holds_header else self.frame.payload
        # The current field, the index of the current byte in the header, and the bytes of the field
        # not yet sent.
        field, index, remaining = Signal(_Field), Signal(range(_HEADER)), Signal(11)
        field_end, byte = Signal(), self.bytes.payload
        m.d.sync += field_end.eq(remaining == 0)
        own_byte = self._own_byte(m, crc, frame, field, index)
        m.d.comb += [
            crc.data.eq(byte), crc.valid.eq(self.bytes.valid & self.bytes.ready),
            crc.emit.eq(field == _Field.CRC),
            crc.include.eq(
                (field == _Field.PAYLOAD) | ((field == _Field.HEADER) & (index >= len(SYNC)))
            ),
        ]
        if self.fast:
            follows = Signal()  # another byte of the payload, although `remaining` is a cycle old
            m.d.sync += follows.eq((field == _Field.PAYLOAD) & remaining[2:].any())

        def start_field(next_field, count):
            return [field.eq(next_field), remaining.eq(count)]

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += crc.start.eq(1)
                if self.holds_header:
                    m.d.comb += self.frame.ready.eq(1)
                    m.d.sync += frame.eq(self.frame.payload)
                m.d.sync += [*start_field(_Field.HEADER, _HEADER), index.eq(0)]
                with m.If(self.frame.valid):
                    m.next = "WAIT_DATA"
            with m.State("SELECT"):
                m.next = "SEND"
                m.d.sync += [byte.eq(own_byte), self.bytes.valid.eq(1)]
                with m.If(field_end):
                    m.next = "NEXT_FIELD"
                    m.d.sync += self.bytes.valid.eq(0)
                with m.If(field == _Field.PAYLOAD):
                    m.d.sync += byte.eq(self.payload.payload)
                    with m.If(~field_end):
                        m.d.comb += self.payload.ready.eq(1)
                        with m.If(~self.payload.valid):
                            m.next = "SELECT"
                            m.d.sync += self.bytes.valid.eq(0)
            with m.State("NEXT_FIELD"):
                m.next = "WAIT_CRC"
                with m.Switch(field):
                    with m.Case(_Field.HEADER):
                        m.d.sync += start_field(_Field.PAYLOAD, frame.length)
                        if not self.holds_header:
                            m.d.comb += self.frame.ready.eq(1)
                    with m.Case(_Field.PAYLOAD):
                        m.d.sync += start_field(_Field.CRC, _CRC)
                    with m.Default():
                        m.d.comb += self.done.eq(1)
                        m.next = "IDLE"
            with m.State("SEND"):
                with m.If(self.bytes.ready):
                    m.d.sync += [
                        self.bytes.valid.eq(0), index.eq(index + 1), remaining.eq(remaining - 1),
                    ]
                    m.next = "WAIT_CRC"
                    if self.fast:
                        with m.If(follows & self.payload.valid):
                            m.d.comb += self.payload.ready.eq(1)
                            m.d.sync += [byte.eq(self.payload.payload), self.bytes.valid.eq(1)]
                            m.next = "SEND"
            with m.State("WAIT_CRC"):
                with m.If(crc.idle):
                    m.next = "WAIT_DATA"
            with m.State("WAIT_DATA"):  # field_end is valid in the next cycle
                m.next = "SELECT"
        return m

    @staticmethod
    def _own_byte(m, crc, frame, field, index):
        """The byte of a header or a CRC; in SELECT, the index and the CRC are a cycle old or older.
        """
        length, own_byte = Signal(32), Signal(8)
        m.d.comb += length.eq(frame.length)
        sync = C(int.from_bytes(SYNC, "little"), 8 * len(SYNC))
        header = Cat(sync, frame.type, frame.sequence, length)
        m.d.sync += own_byte.eq(
            Mux(field == _Field.CRC, crc.crc[:8], header.word_select(index, 8))
        )
        return own_byte
