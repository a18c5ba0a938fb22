"""The frame receiver: bytes from the host become words of the command stream, and requests."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.frames import MAX_PAYLOAD, SYNC, FrameType
from weft.hw.serial.crc import Crc32
from weft.hw.stream.commit_fifo import CommitFifo

__all__ = ["FrameReceiver", "FrameRequest", "Nak", "RequestOp"]

_SYNC = int.from_bytes(SYNC, "little")
_HEADER, _CRC = 6, 4  # bytes of a frame: header without SYNC, CRC
_READ = 4  # bytes of a READ's payload


class RequestOp(enum.Enum, shape=2):
    """The actions of the transmitter for a received frame."""

    READ = 0
    ABORT = 1
    NAK = 2  # report that the frame was rejected


class Nak(enum.Enum, shape=2):
    """Why a frame was rejected."""

    CRC = 0   # the CRC does not match
    TYPE = 1  # unknown type
    SIZE = 2  # wrong length of payload
    FULL = 3  # the FIFO has no space for another frame


class FrameRequest(data.Struct):
    """A frame that the transmitter must answer: its sequence number, operation and operands.

    ``nak`` is valid with `RequestOp.NAK`; ``address`` and ``count`` with `RequestOp.READ`.
    """

    op: RequestOp
    nak: Nak
    sequence: 8
    address: 8
    count: 8


class _Header(data.Struct):
    """A decoded header: whether it is COMMANDS, its operation, whether and why it is rejected."""

    commands: 1
    op: RequestOp
    too_long: 1
    rejected: 1
    nak: Nak


class FrameReceiver(wiring.Component):
    """Checks each frame completely before it takes effect.

    A payload has at most `weft.frames.MAX_PAYLOAD` bytes. Command words wait in a `CommitFifo`
    until the CRC is checked. A COMMANDS frame is accepted only if its sequence number follows that
    of the last accepted frame. So a host may retransmit frames that were not acknowledged: each is
    executed once, in order. After an error the receiver searches for the next SYNC.

    A byte takes at most 17 cycles; the core cannot delay it. So the receiver is always ready for
    the next byte of a `weft.hw.serial.uart.UartReceiver`. A request that arrives while the previous
    one still waits is dropped.

    Parameters
    ----------
    bytes_in : int
        Width of the core's command stream, in bytes.
    target : str
        FPGA family, as in the Config.

    Attributes
    ----------
    bytes : In, stream of 8 bits
        Bytes from the host.
    rx_error : In
        Pulse: bytes were lost, so the current frame is abandoned; 1 bit.
    commands : Out, stream of ``bytes_in`` bytes
        Words of the core's command stream.
    request : Out, stream of `FrameRequest`
        Frames to answer, other than by an acknowledgement.
    ack : Out, stream of 8 bits
        Sequence number of the last accepted COMMANDS frame. Sent when the FIFO has space for
        another frame, and after a frame with an unexpected number.
    """

    def __init__(self, *, bytes_in, target):
        self.bytes_in = bytes_in
        self.target = target
        super().__init__({
            "bytes": In(stream.Signature(8)),
            "rx_error": In(1),
            "commands": Out(stream.Signature(8 * bytes_in)),
            "request": Out(stream.Signature(FrameRequest)),
            "ack": Out(stream.Signature(8)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = CommitFifo(
            bytes_out=self.bytes_in, depth=2 * MAX_PAYLOAD, target=self.target
        )
        m.submodules.crc = crc = Crc32()
        connect(m, fifo.words, flipped(self.commands))
        in_search, in_field = Signal(), Signal()  # from the FSM: looks for SYNC, takes bytes
        remaining = Signal(range(MAX_PAYLOAD + 1))  # bytes of the current field not yet received
        byte_valid, history, search, more, sync_found = self._receive_byte(
            m, fifo, crc, in_search, in_field, remaining
        )
        sequence = Signal(8)
        full, ack_request, unexpected = self._acknowledge(m, fifo, sequence)
        decoded = self._decode_header(m, history, full)
        header = Signal.like(decoded)  # captured at the end of the header

        send_request = Signal()
        needs_request = self._request(m, crc, header, history, sequence, send_request)

        def receive_field(next_state):
            """Receive the remaining bytes of the field, then go to ``next_state``."""
            m.d.comb += in_field.eq(1)
            with m.If(self.rx_error):
                m.next = "SYNC"
            with m.Elif(~more & crc.idle):
                m.next = next_state

        with m.FSM():
            with m.State("SYNC"):
                m.d.comb += in_search.eq(1)
                m.d.sync += remaining.eq(_HEADER)
                with m.If(sync_found):
                    m.next = "HEADER"
            with m.State("HEADER"):
                receive_field("DECODE")
            with m.State("DECODE"):
                m.d.sync += [
                    header.eq(decoded), sequence.eq(history[24:32]), remaining.eq(history[32:64]),
                ]
                m.next = "CHECK_LENGTH"
            with m.State("CHECK_LENGTH"):
                m.next = "PAYLOAD"
                with m.If(header.too_long):
                    m.next = "EXECUTE"
            with m.State("PAYLOAD"):
                m.d.comb += fifo.write.eq(
                    byte_valid & header.commands & ~header.rejected & ~unexpected
                )
                with m.If(~more & crc.idle):
                    m.d.sync += remaining.eq(_CRC)
                receive_field("PAYLOAD_END")
            with m.State("PAYLOAD_END"):
                m.next = "CRC"
            with m.State("CRC"):
                receive_field("CRC_END")
            with m.State("CRC_END"):
                m.next = "EXECUTE"
            with m.State("EXECUTE"):
                m.next = "SYNC"
                with m.If(needs_request):
                    m.d.comb += send_request.eq(1)
                with m.Elif(unexpected):
                    m.next = "ACK"
                with m.Else():
                    m.d.comb += fifo.commit.eq(1)
                    m.next = "COMMIT"
            with m.State("COMMIT"):
                m.next = "ACK"
            with m.State("ACK"):  # fifo.level counts the committed bytes from the next cycle on
                m.d.comb += ack_request.eq(1)
                m.next = "SYNC"
        return m

    def _receive_byte(self, m, fifo, crc, in_search, in_field, remaining):
        """Accept bytes from the stream and pass them to the CRC and the FIFO.

        Returns ``byte_valid`` (high in the cycle after a byte moved), ``history`` (the last eight
        bytes), and three registered bits: ``search`` (``in_search``), ``more`` (``remaining`` is
        not 0) and ``sync_found`` (the last two bytes are SYNC).
        """
        history = Signal(64)
        byte_valid, byte = Signal(), Signal(8)
        search, more, sync_found = Signal(), Signal(), Signal()
        fire = self.bytes.valid & self.bytes.ready
        m.d.sync += [
            search.eq(in_search), more.eq(remaining != 0), byte_valid.eq(fire),
            byte.eq(self.bytes.payload),
            sync_found.eq(byte_valid & (Cat(history[56:], byte) == _SYNC)),
            self.bytes.ready.eq((search | (in_field & more)) & crc.idle & ~byte_valid & ~fire),
        ]
        m.d.comb += [
            fifo.data.eq(byte), fifo.discard.eq(search),
            crc.data.eq(byte), crc.valid.eq(byte_valid), crc.start.eq(search),
            crc.include.eq(~search),
        ]
        with m.If(byte_valid):
            m.d.sync += [history.eq(Cat(history, byte)[8:]), remaining.eq(remaining - 1)]
        return byte_valid, history, search, more, sync_found

    def _decode_header(self, m, history, full):
        """The `_Header` of the bytes in ``history``; valid a few cycles after its last byte."""
        frame_type, length = history[16:24], history[32:64]
        decoded = Signal(_Header)
        commands, read, abort = known_types = [
            Signal(name=f"is_{member.name.lower()}")
            for member in (FrameType.COMMANDS, FrameType.READ, FrameType.ABORT)
        ]
        too_long, partial_word, length_ok = Signal(), Signal(), Signal()
        m.d.sync += [
            commands.eq(frame_type == FrameType.COMMANDS), read.eq(frame_type == FrameType.READ),
            abort.eq(frame_type == FrameType.ABORT), too_long.eq(length > MAX_PAYLOAD),
            partial_word.eq((length % self.bytes_in).any()),
            length_ok.eq(length == Mux(read, _READ, 0)),
        ]
        m.d.comb += [
            decoded.commands.eq(commands),
            decoded.op.eq(Mux(read, RequestOp.READ, RequestOp.ABORT)),
            decoded.too_long.eq(too_long), decoded.rejected.eq(1), decoded.nak.eq(Nak.SIZE),
        ]
        with m.If(too_long | (commands & partial_word)):
            pass
        with m.Elif(commands & full):
            m.d.comb += decoded.nak.eq(Nak.FULL)
        with m.Elif(~Cat(known_types).any()):
            m.d.comb += decoded.nak.eq(Nak.TYPE)
        with m.Elif(commands | length_ok):
            m.d.comb += decoded.rejected.eq(0)
        return decoded

    def _request(self, m, crc, header, history, sequence, send):
        """Put the frame on ``request`` when ``send`` is high.

        Returns a bit that says whether the frame needs a request: every frame does, except
        COMMANDS without an error. It is valid one cycle after ``crc.match``.
        """
        crc_error, needs_request = Signal(), Signal()
        m.d.sync += [
            crc_error.eq(~crc.match & ~header.too_long),
            needs_request.eq(~crc.match | header.rejected | ~header.commands),
        ]
        with m.If(self.request.ready):
            m.d.sync += self.request.valid.eq(0)
        with m.If(send & ~self.request.valid):
            request = self.request.payload
            m.d.sync += [
                self.request.valid.eq(1), request.sequence.eq(sequence),
                request.address.eq(history[:8]), request.count.eq(history[16:24]),
                request.op.eq(Mux(crc_error | header.rejected, RequestOp.NAK, header.op)),
                request.nak.eq(Mux(crc_error, Nak.CRC, header.nak)),
            ]
        return needs_request

    def _acknowledge(self, m, fifo, sequence):
        """Put sequence numbers on ``ack``.

        Returns ``full`` (the FIFO has no space for another frame), ``ack_request`` (for the FSM to
        drive: send an acknowledgement) and ``unexpected`` (``sequence`` does not follow the last
        accepted number; valid one cycle after ``sequence``).
        """
        full, ack_request, pending, unexpected = Signal(), Signal(), Signal(), Signal()
        accepted, expected = Signal(8), Signal(8, init=1)  # sequence numbers
        m.d.sync += [full.eq(fifo.level > MAX_PAYLOAD), unexpected.eq(sequence != expected)]
        with m.If(self.ack.ready):
            m.d.sync += self.ack.valid.eq(0)
        with m.If(pending & ~full & ~self.ack.valid):
            m.d.sync += [pending.eq(0), self.ack.valid.eq(1), self.ack.payload.eq(accepted)]
        with m.If(ack_request):
            m.d.sync += pending.eq(1)
            with m.If(~unexpected):
                m.d.sync += [accepted.eq(sequence), expected.eq(sequence + 1)]
        return full, ack_request, unexpected
