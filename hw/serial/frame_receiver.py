"""The frame receiver: bytes from the host become words of the command stream, and requests."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.frames import MAX_PAYLOAD, MAX_WRITE, SYNC, FrameType
from weft.hw.serial.crc import ByteCrc32, Crc32
from weft.hw.stream.fifo import CommitFifo

__all__ = [
    "COMMAND_FRAMES", "LANGUAGE_FRAMES", "NETWORK_FRAMES", "FrameReceiver", "FrameRequest", "Nak",
    "ReceivedFrames", "RequestOp",
]

# States that wait a cycle for registers, and the states that follow.
_WAITS = {"PAYLOAD_END": "CRC", "CRC_END": "EXECUTE", "COMMIT": "COUNT", "COUNT": "ACK"}
_HEADER, _CRC = 6, 4  # bytes of a frame: header without SYNC, CRC


class RequestOp(enum.Enum, shape=2):
    """The actions of the transmitter for a received frame."""

    READ = 0
    ABORT = 1
    NAK = 2  # report that the frame was rejected
    READ_MEMORY = 3


class Nak(enum.Enum, shape=2):
    """Why a frame was rejected."""

    CRC = 0   # the CRC does not match
    TYPE = 1  # unknown type
    SIZE = 2  # wrong length of payload
    FULL = 3  # the FIFO has no space for another frame


@dataclass(frozen=True)
class ReceivedFrames:
    """The frames that a core accepts.

    Attributes
    ----------
    ordered : dict
        Types that are accepted in the order of their numbers, stored and acknowledged. The value
        is the size of the payload in bytes; 0 allows any number of whole command words.
    requests : dict
        Types that are answered: the operation, and the size of the payload in bytes.
    max_payload : int
        Maximum payload of an ordered frame, in bytes.
    with_header : bool
        Whether the header of an ordered frame, without SYNC, is stored before its payload.
    """

    ordered: Mapping[FrameType, int]
    requests: Mapping[FrameType, tuple[RequestOp, int]]
    max_payload: int
    with_header: bool

    @property
    def fifo_depth(self) -> int:
        """Bytes of a FIFO that holds two ordered frames: a power of two."""
        return 1 << ceil_log2(2 * self.stored)

    @property
    def stored(self) -> int:
        """Maximum bytes that an ordered frame takes in the FIFO."""
        return self.max_payload + _HEADER * self.with_header

    @property
    def operand_bytes(self) -> int:
        """Maximum payload of a request, in bytes."""
        return max(size for _, size in self.requests.values())


_REQUESTS = {FrameType.READ: (RequestOp.READ, 4), FrameType.ABORT: (RequestOp.ABORT, 0)}
# Of a product core, of a network core, and of a language core.
COMMAND_FRAMES = ReceivedFrames({FrameType.COMMANDS: 0}, _REQUESTS, MAX_PAYLOAD, False)
NETWORK_FRAMES = ReceivedFrames(
    {FrameType.WRITE: 0, FrameType.START: 8},
    _REQUESTS | {FrameType.READ_MEMORY: (RequestOp.READ_MEMORY, 8)}, MAX_WRITE, True,
)
LANGUAGE_FRAMES = replace(NETWORK_FRAMES, ordered={FrameType.WRITE: 0, FrameType.START: 12})


class FrameRequest(data.StructLayout):
    """A frame that must be answered: its sequence number, operation and operands.

    ``nak`` is valid with `RequestOp.NAK`, ``operands`` with the others: the bytes of the longest
    payload of a request; a shorter payload lies in the highest bytes.
    """

    def __init__(self, frames):
        super().__init__({
            "op": RequestOp, "nak": Nak, "sequence": 8, "operands": 8 * frames.operand_bytes,
        })


class _Header(data.Struct):
    """A decoded header: whether it is ordered, its operation, whether and why it is rejected."""

    ordered: 1
    op: RequestOp
    too_long: 1
    rejected: 1
    nak: Nak


class FrameReceiver(wiring.Component):
    """Checks each frame completely before it takes effect.

    The words of ordered frames (COMMANDS, or WRITE and START) wait in a `CommitFifo` until the CRC
    is checked. Such a frame is accepted only if its sequence number follows that of the last
    accepted frame. So a host may retransmit frames that were not acknowledged: each is
    executed once, in order. After an error the receiver searches for the next SYNC.

    A byte takes at most 17 cycles; the core cannot delay it. So the receiver is always ready for
    the next byte of a `weft.hw.serial.uart.UartReceiver`. A request that arrives while the previous
    one still waits is dropped.

    A ``fast`` receiver takes a byte of a payload each cycle, but the last three; other bytes take
    4 cycles, and a frame 10 cycles more.

    Parameters
    ----------
    bytes_in : int
        Width of the core's command stream, in bytes.
    target : str
        FPGA family, as in the Config.
    frames : ReceivedFrames
    fast : bool

    Attributes
    ----------
    bytes : In, stream of 8 bits
        Bytes from the host.
    rx_error : In
        Pulse: bytes were lost, so the current frame is abandoned; 1 bit.
    commands : Out, stream of ``bytes_in`` bytes
        Words of the ordered frames.
    pending : Out
        High while the FIFO has words of accepted frames; 1 bit.
    request : Out, stream of `FrameRequest`
        Frames to answer, other than by an acknowledgement.
    ack : Out, stream of 8 bits
        Sequence number of the last accepted frame. Sent when the FIFO has space for
        another frame, and after a frame with an unexpected number.
    """

    def __init__(self, *, bytes_in, target, frames=COMMAND_FRAMES, fast=False):
        self.bytes_in = bytes_in
        self.target = target
        self.frames = frames
        self.fast = fast
        super().__init__({
            "bytes": In(stream.Signature(8)),
            "rx_error": In(1),
            "commands": Out(stream.Signature(8 * bytes_in)),
            "pending": Out(1),
            "request": Out(stream.Signature(FrameRequest(frames))),
            "ack": Out(stream.Signature(8)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = CommitFifo(
            bytes_out=self.bytes_in, depth=self.frames.fifo_depth, target=self.target,
            fast=self.fast,
        )
        m.submodules.crc = crc = ByteCrc32() if self.fast else Crc32()
        connect(m, fifo.words, flipped(self.commands))
        # From the FSM: it looks for SYNC, or takes bytes of a field; also which field.
        in_search, in_field, in_header, in_payload = (
            Signal(name=name) for name in ("in_search", "in_field", "in_header", "in_payload")
        )
        remaining = Signal(range(self.frames.max_payload + 1))  # bytes of this field to receive
        new_field, field_bytes = Signal(), Signal.like(remaining)  # from the FSM: sets `remaining`
        byte_valid, search, more, sync_found = self._receive_byte(
            m, fifo, crc, in_search, in_field, in_payload, remaining
        )
        m.d.sync += remaining.eq(Mux(new_field, field_bytes, remaining - byte_valid))
        header_valid, payload_valid = self._by_field(m, byte_valid, in_header, in_payload)
        header_full = Signal()  # full, before the header
        decoded, sequence, length = self._decode_header(
            m, crc.data, header_valid, remaining, header_full
        )
        full, ack_request, unexpected = self._acknowledge(m, fifo, sequence)
        header = Signal.like(decoded)  # captured at the end of the header
        send_request = Signal()
        needs_request = self._request(m, crc, header, sequence, payload_valid, send_request)
        m.d.sync += fifo.commit.eq(0)
        self._store(m, fifo, header, header_valid & ~header_full, payload_valid)
        field_end = ~more & crc.idle

        def receive_field(next_state):
            """Receive the remaining bytes of the field, then go to ``next_state``."""
            m.d.comb += in_field.eq(1)
            with m.If(self.rx_error):
                m.next = "SYNC"
            with m.Elif(field_end):
                m.next = next_state

        with m.FSM():
            with m.State("SYNC"):
                m.d.comb += [in_search.eq(1), new_field.eq(1), field_bytes.eq(_HEADER)]
                m.d.sync += header_full.eq(full)
                with m.If(sync_found):
                    m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += in_header.eq(1)
                receive_field("DECODE")
            with m.State("DECODE"):
                m.d.comb += [new_field.eq(1), field_bytes.eq(length)]
                m.d.sync += header.eq(decoded)
                m.next = "CHECK_LENGTH"
            with m.State("CHECK_LENGTH"):
                m.next = "PAYLOAD"
                with m.If(header.too_long):
                    m.next = "EXECUTE"
            with m.State("PAYLOAD"):
                m.d.comb += in_payload.eq(1)
                m.d.comb += [new_field.eq(field_end), field_bytes.eq(_CRC)]
                receive_field("PAYLOAD_END")
            with m.State("CRC"):
                receive_field("CRC_END")
            for state, next_state in _WAITS.items():
                with m.State(state):
                    m.next = next_state
            with m.State("EXECUTE"):
                m.d.comb += send_request.eq(needs_request)
                m.d.sync += fifo.commit.eq(~needs_request & ~unexpected)  # in the state COMMIT
                m.next = "COMMIT"
                with m.If(needs_request):
                    m.next = "SYNC"
            with m.State("ACK"):  # fifo.level counts the committed bytes from this cycle on
                m.d.comb += ack_request.eq(1)
                m.next = "SYNC"
        return m

    def _receive_byte(self, m, fifo, crc, in_search, in_field, in_payload, remaining):
        """Accept bytes from the stream and pass them to the CRC and the FIFO.

        Returns ``byte_valid`` (high in the cycle after a byte moved), and three registered bits:
        ``search`` (``in_search``), ``more`` (``remaining`` is not 0) and ``sync_found`` (the last
        two bytes are SYNC).
        """
        byte_valid, byte = Signal(), Signal(8)
        search, more, sync_begun, sync_found = Signal(), Signal(), Signal(), Signal()
        fire = self.bytes.valid & self.bytes.ready
        ready = (search | (in_field & more)) & crc.idle & ~byte_valid & ~fire
        if self.fast:
            # A byte of the payload is left even if four cycles have one that is not counted yet.
            many = Signal()
            m.d.sync += many.eq(in_payload & remaining[2:].any())
            ready = ready | many
        m.d.sync += [
            search.eq(in_search), more.eq(remaining != 0), byte_valid.eq(fire),
            sync_found.eq(byte_valid & sync_begun & (byte == SYNC[1])),
            self.bytes.ready.eq(ready),
        ]
        m.d.comb += [
            self.pending.eq((fifo.level != 0) | fifo.words.valid),
            fifo.data.eq(byte), fifo.discard.eq(search),
            crc.data.eq(byte), crc.valid.eq(byte_valid), crc.start.eq(search),
            crc.include.eq(~search),
        ]
        with m.If(fire):
            m.d.sync += byte.eq(self.bytes.payload)
        with m.If(byte_valid):
            m.d.sync += sync_begun.eq(byte == SYNC[0])
        return byte_valid, search, more, sync_found

    def _by_field(self, m, byte_valid, in_header, in_payload):
        """``byte_valid`` for a byte of the header, and for a byte of the payload.

        A byte arrives two cycles or more after its field begins, so the field may be late.
        """
        r_header, r_payload = Signal(), Signal()
        m.d.sync += [r_header.eq(in_header), r_payload.eq(in_payload)]
        return byte_valid & r_header, byte_valid & r_payload

    def _store(self, m, fifo, header, header_valid, payload_valid):
        """Write the bytes of an ordered frame into the FIFO, with its header if it is stored."""
        stores_payload = Signal()  # registered: it does not change in the payload
        m.d.sync += stores_payload.eq(header.ordered & ~header.rejected)
        stores_header = header_valid & self.frames.with_header
        m.d.comb += fifo.write.eq(stores_header | (payload_valid & stores_payload))

    def _decode_header(self, m, byte, valid, position, full):
        """Decode the header byte by byte; ``position`` is 6 for its first byte, 1 for its last.

        Returns the `_Header`, valid three cycles after the last byte, the sequence number and the
        length of the payload.
        """
        decoded = Signal(_Header)
        op, expected_length = Signal(RequestOp), Signal(range(16))
        sequence, length = Signal(8), Signal(range(self.frames.max_payload + 1))
        ordered, any_length, known, long, length_ok, too_long = (
            Signal(name=name) for name in (
                "ordered", "any_length", "known", "long", "length_ok", "too_long",
            )
        )
        m.d.sync += [
            too_long.eq(long | (length > self.frames.max_payload)),
            length_ok.eq(length == expected_length),
        ]
        partial_word = (length % self.bytes_in).any()
        high_bits = len(length) - 8
        r_valid, r_position = Signal(), Signal(3)  # the byte stays until the next one arrives
        m.d.sync += [r_valid.eq(valid), r_position.eq(position)]
        with m.If(r_valid):
            with m.Switch(r_position):
                with m.Case(_HEADER):
                    self._decode_type(m, byte, ordered, any_length, known, op, expected_length)
                with m.Case(_HEADER - 1):
                    m.d.sync += sequence.eq(byte)
                with m.Case(4):
                    m.d.sync += length.eq(byte)
                with m.Case(3):
                    m.d.sync += [length[8:].eq(byte), long.eq(byte[high_bits:].any())]
                with m.Default():
                    m.d.sync += long.eq(long | byte.any())
        m.d.comb += [
            decoded.ordered.eq(ordered), decoded.op.eq(op),
            decoded.too_long.eq(too_long), decoded.rejected.eq(1), decoded.nak.eq(Nak.SIZE),
        ]
        with m.If(too_long | (ordered & partial_word)):
            pass
        with m.Elif(ordered & full):
            m.d.comb += decoded.nak.eq(Nak.FULL)
        with m.Elif(~known):
            m.d.comb += decoded.nak.eq(Nak.TYPE)
        with m.Elif(any_length | length_ok):
            m.d.comb += decoded.rejected.eq(0)
        return decoded, sequence, length

    def _decode_type(self, m, byte, ordered, any_length, known, op, expected_length):
        """Set the registers that follow from the type of a frame."""
        m.d.sync += [ordered.eq(0), any_length.eq(0), known.eq(1), expected_length.eq(0)]
        with m.Switch(byte):
            for kind, size in self.frames.ordered.items():
                with m.Case(kind):
                    m.d.sync += [
                        ordered.eq(1), any_length.eq(size == 0), expected_length.eq(size),
                    ]
            for kind, (kind_op, size) in self.frames.requests.items():
                with m.Case(kind):
                    m.d.sync += [op.eq(kind_op), expected_length.eq(size)]
            with m.Default():
                m.d.sync += known.eq(0)

    def _request(self, m, crc, header, sequence, operand_valid, send):
        """Put the frame on ``request`` when ``send`` is high.

        The payload moves into the operands of the request, unless the previous request still waits:
        then the frame is ``late``.

        Returns a bit that says whether the frame needs a request: every frame does, except
        ordered ones without an error. It is valid one cycle after ``crc.match``.
        """
        crc_error, needs_request, late = Signal(), Signal(), Signal()
        request = self.request.payload
        is_nak = crc_error | header.rejected
        m.d.sync += [
            crc_error.eq(~crc.match & ~header.too_long),
            needs_request.eq(~crc.match | header.rejected | ~header.ordered),
        ]
        with m.If(self.request.ready):
            m.d.sync += self.request.valid.eq(0)
        with m.If(operand_valid):
            with m.If(self.request.valid):
                m.d.sync += late.eq(1)
            with m.Else():
                m.d.sync += request.operands.eq(Cat(request.operands, crc.data)[8:])
        with m.If(crc.start):
            m.d.sync += late.eq(0)
        with m.If(send & ~self.request.valid & (is_nak | ~late)):
            m.d.sync += self.request.valid.eq(1)
        with m.If(~self.request.valid):  # in each cycle, so that `send` decides only about valid
            m.d.sync += [
                request.sequence.eq(sequence),
                request.op.eq(Mux(is_nak, RequestOp.NAK, header.op)),
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
        m.d.sync += [
            full.eq(fifo.level > fifo.depth - self.frames.stored),
            unexpected.eq(sequence != expected),
        ]
        with m.If(self.ack.ready):
            m.d.sync += self.ack.valid.eq(0)
        with m.If(pending & ~full & ~self.ack.valid):
            m.d.sync += [pending.eq(0), self.ack.valid.eq(1), self.ack.payload.eq(accepted)]
        with m.If(ack_request):
            m.d.sync += pending.eq(1)
            with m.If(~unexpected):
                m.d.sync += [accepted.eq(sequence), expected.eq(sequence + 1)]
        return full, ack_request, unexpected
