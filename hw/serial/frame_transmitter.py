"""The frame transmitter: answers, acknowledgements and results as frames to the host."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from weft.frames import MAX_PAYLOAD, FrameType
from weft.hw.buffers.bank import Bank
from weft.hw.output.stream_packer import Result
from weft.hw.serial.frame_receiver import COMMAND_FRAMES, FrameRequest, Nak, RequestOp
from weft.hw.serial.frame_sender import FrameSender

__all__ = ["NAK_TEXTS", "FrameTransmitter", "PayloadBuffer"]


class PayloadBuffer(wiring.Component):
    """Collects up to ``depth`` bytes of one job's results, then gives them byte by byte.

    While ``full`` is high it accepts no results. A pulse on ``clear`` empties it.

    Parameters
    ----------
    bytes_out : int
        Width of the result stream, in bytes.
    depth : int
        Maximum payload in bytes: a power of two, at least ``bytes_out``.
    target : str
        FPGA family, as in the Config.
    fast : bool

    Attributes
    ----------
    results : In, stream of `weft.hw.output.stream_packer.Result`
    full : Out
        High when the payload is complete: the job has ended, or ``depth`` bytes are stored; 1 bit.
    length : Out
        Number of stored bytes; valid while ``full`` is high.
    meta : Out
        ``tag``, ``last`` and ``status`` of the last stored word; 32 bits, valid while ``full`` is
        high.
    byte : Out
        Current byte of the payload; 8 bits, valid 4 cycles after ``full`` rises and 3 cycles after
        each ``advance``. In a ``fast`` buffer it is valid with ``valid``, which stays high while
        bytes follow.
    valid : Out
        Of a ``fast`` buffer, else 0; 1 bit.
    advance : In
        Pulse: move to the next byte; 1 bit. Allowed with ``valid`` in a ``fast`` buffer.
    clear : In
        Pulse: start the next payload; 1 bit.
    """

    def __init__(self, *, bytes_out, depth, target, fast=False):
        self.bytes_out = bytes_out
        self.depth = depth
        self.target = target
        self.fast = fast
        super().__init__({
            "results": In(stream.Signature(Result(bytes_out=bytes_out))),
            "full": Out(1),
            "length": Out(range(depth + 1)),
            "meta": Out(data.StructLayout({"tag": 16, "last": 8, "status": 8})),
            "byte": Out(8),
            "valid": Out(1),
            "advance": In(1),
            "clear": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Bank(width=8, depth=self.depth, target=self.target)
        word = Signal(8 * self.bytes_out)
        byte_index = Signal(ceil_log2(self.bytes_out))  # of the lowest byte of the word
        read_addr = Signal(range(self.depth))
        ready = Signal(init=1)
        job_end = Signal()  # registered: in STORE and CHECK it is the one of the word
        m.d.sync += job_end.eq(self.meta.last.any())
        m.d.comb += self.results.ready.eq(ready)
        m.d.comb += [
            memory.read_addr.eq(read_addr), self.byte.eq(memory.read_data),
            memory.write_addr.eq(self.length),
            memory.write_data.eq(word[:8]),
        ]
        if self.fast:
            self._read_ahead(m, memory, read_addr)
        else:
            with m.If(self.advance):
                m.d.sync += read_addr.eq(read_addr + 1)
        with m.FSM():
            with m.State("WORD"):  # `ready` is the only register that sees `valid`
                with m.If(ready):
                    m.d.sync += [
                        ready.eq(~self.results.valid),
                        word.eq(self.results.payload.data),
                        self.meta.tag.eq(self.results.payload.tag),
                        self.meta.last.eq(self.results.payload.last),
                        self.meta.status.eq(self.results.payload.status),
                    ]
                with m.Else():
                    m.next = "STORE"
            with m.State("STORE"):
                m.d.comb += memory.write_en.eq(1)
                m.d.sync += [
                    self.length.eq(self.length + 1),
                    byte_index.eq(byte_index + 1), word.eq(word >> 8),
                ]
                with m.If(byte_index == self.bytes_out - 1):
                    m.d.sync += byte_index.eq(0)
                    m.next = "CHECK"
            with m.State("CHECK"):
                with m.If(job_end | self.length[-1]):  # the highest bit: `depth` bytes
                    m.next = "FULL"
                with m.Else():
                    m.d.sync += ready.eq(1)
                    m.next = "WORD"
            with m.State("FULL"):
                m.d.comb += self.full.eq(1)
                with m.If(self.clear):
                    m.d.sync += [self.length.eq(0), read_addr.eq(0), ready.eq(1)]
                    m.next = "WORD"
        return m

    def _read_ahead(self, m, memory, read_addr):
        """Keep the pipeline of the memory full, so that a byte may leave in each cycle."""
        arriving = Signal(Bank.LATENCY)  # bytes in the pipeline; bit 0 came last
        m.d.comb += [
            self.valid.eq(arriving[-1]), memory.read_en.eq(self.advance | ~arriving[-1]),
        ]
        with m.If(memory.read_en):
            m.d.sync += [arriving.eq(Cat(self.full, arriving)), read_addr.eq(read_addr + self.full)]
        with m.If(self.clear):
            m.d.sync += arriving.eq(0)


NAK_TEXTS = b"CRC ", b"type", b"size", b"room"  # payload of an ERROR frame, by `Nak`
_META = 4  # bytes of tag, last and status of results
# Cycles between two bytes of a fast transmitter that are not from the buffer: a register is read in
# three of them.
_PAUSE = 7


class FrameTransmitter(wiring.Component):
    """Sends one frame at a time: answers to requests first, then acknowledgements, then results.

    A byte takes at least 12 cycles. A ``fast`` transmitter sends a byte of results each cycle, but
    the last ones; other bytes take 5 to 8 cycles.

    Parameters
    ----------
    bytes_out : int
        Width of the core's result stream, in bytes.
    target : str
        FPGA family, as in the Config.
    fast : bool

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

    def __init__(self, *, bytes_out, target, fast=False):
        self.bytes_out = bytes_out
        self.target = target
        self.fast = fast
        super().__init__({
            "results": In(stream.Signature(Result(bytes_out=bytes_out))),
            "request": In(stream.Signature(FrameRequest(COMMAND_FRAMES))),
            "ack": In(stream.Signature(8)),
            "address": Out(8),
            "data": In(32),
            "abort": Out(1),
            "bytes": Out(stream.Signature(8)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = PayloadBuffer(
            bytes_out=self.bytes_out, depth=MAX_PAYLOAD, target=self.target, fast=self.fast
        )
        m.submodules.sender = sender = FrameSender(fast=self.fast)
        connect(m, flipped(self.results), buffer.results)
        connect(m, sender.bytes, flipped(self.bytes))
        frame_type, nak = Signal(FrameType), Signal(Nak)  # of the frame that is being sent
        self._select_frame(m, buffer, sender.frame, frame_type, nak)
        m.d.sync += buffer.clear.eq(sender.done & (frame_type == FrameType.RESULTS))

        offset, in_meta = Signal(2), Signal()  # index of a byte modulo 4; the first four bytes
        taken, first = Signal(), Signal()
        m.d.comb += first.eq(in_meta & (offset == 0))
        m.d.sync += taken.eq(sender.payload.valid & sender.payload.ready)
        from_buffer = Signal()
        m.d.comb += from_buffer.eq(~in_meta & (frame_type == FrameType.RESULTS))
        with m.If(sender.frame.valid & sender.frame.ready):
            m.d.sync += [offset.eq(0), in_meta.eq(1)]
        with m.If(taken):
            m.d.sync += [offset.eq(offset + 1), in_meta.eq(in_meta & (offset != _META - 1))]
        word = Signal(32)  # a register's value, for REGISTERS
        with m.If(Mux(taken, offset == 3, first)):
            m.d.sync += word.eq(self.data)
        with m.If(taken & (offset == 0)):
            m.d.sync += self.address.eq(self.address + 1)
        byte = self._payload_byte(m, buffer, frame_type, nak, word, in_meta, offset)
        self._offer(m, sender.payload, buffer, byte, from_buffer, taken)
        return m

    def _offer(self, m, payload, buffer, byte, from_buffer, taken):
        """Offer the next byte of the payload to the sender.

        A slow sender takes a byte every 12 cycles or later, so the next one is always ready. A fast
        one gets results as they come from the buffer, and waits for other bytes.
        """
        if not self.fast:
            m.d.comb += [payload.valid.eq(1), payload.payload.eq(byte)]
            m.d.sync += buffer.advance.eq(taken & from_buffer)
            return
        pause, fire = Signal(range(_PAUSE + 1)), payload.valid & payload.ready
        m.d.comb += [
            payload.valid.eq(Mux(from_buffer, buffer.valid, pause == 0)),
            payload.payload.eq(Mux(from_buffer, buffer.byte, byte)),
            buffer.advance.eq(fire & from_buffer),
        ]
        with m.If(fire):
            m.d.sync += pause.eq(_PAUSE)
        with m.Elif(pause != 0):
            m.d.sync += pause.eq(pause - 1)

    def _payload_byte(self, m, buffer, frame_type, nak, word, in_meta, offset):
        """The next byte of the payload; it follows ``offset`` by two cycles."""
        texts = C(int.from_bytes(b"".join(NAK_TEXTS), "little"), 32 * len(NAK_TEXTS))
        meta = buffer.meta.as_value()
        has_registers, has_text = Signal(), Signal()  # of the frame
        own_byte, payload_byte = Signal(8), Signal(8)  # own_byte: not from the buffer
        m.d.sync += [
            has_registers.eq(frame_type == FrameType.REGISTERS),
            has_text.eq(frame_type == FrameType.ERROR),
            own_byte.eq(Mux(
                has_text, texts.word_select(Cat(offset, nak), 8),
                Mux(has_registers, word, meta).word_select(offset, 8),
            )),
            payload_byte.eq(Mux(has_text | has_registers | in_meta, own_byte, buffer.byte)),
        ]
        return payload_byte

    def _select_frame(self, m, buffer, frame, frame_type, nak):
        """Choose the next frame while the sender is idle; offer it in the next cycle."""
        request, header = self.request.payload, frame.payload
        result_sequence = Signal(8)
        address, count = request.operands[:8], request.operands[16:24]
        chosen = Signal(3)  # one bit at most, for a cycle
        to_answer, to_acknowledge, to_report = chosen
        buffered = buffer.full & ~buffer.clear
        m.d.sync += [self.abort.eq(0), chosen.eq(0), frame.valid.eq(0)]
        with m.If(frame.ready & ~frame.valid):
            m.d.sync += [
                frame.valid.eq(self.request.valid | self.ack.valid | buffered),
                chosen.eq(Cat(
                    self.request.valid, self.ack.valid & ~self.request.valid,
                    buffered & ~self.ack.valid & ~self.request.valid,
                )),
            ]
        m.d.comb += [self.request.ready.eq(to_answer), self.ack.ready.eq(to_acknowledge)]
        with m.If(frame.ready):
            m.d.sync += frame_type.eq(header.type)
        with m.If(to_answer):
            m.d.comb += header.sequence.eq(request.sequence)
            m.d.sync += [
                nak.eq(request.nak), self.address.eq(address),
                self.abort.eq(request.op == RequestOp.ABORT),
            ]
            with m.Switch(request.op):
                with m.Case(RequestOp.READ):
                    m.d.comb += [header.type.eq(FrameType.REGISTERS), header.length.eq(count << 2)]
                with m.Case(RequestOp.ABORT):
                    m.d.comb += header.type.eq(FrameType.ABORTED)
                with m.Default():
                    m.d.comb += [
                        header.type.eq(FrameType.ERROR), header.length.eq(len(NAK_TEXTS[0])),
                    ]
        with m.Elif(to_acknowledge):
            m.d.comb += [
                header.type.eq(FrameType.ACK), header.sequence.eq(self.ack.payload),
            ]
        with m.Elif(to_report):
            m.d.comb += [
                header.type.eq(FrameType.RESULTS), header.sequence.eq(result_sequence),
                header.length.eq(buffer.length + _META),
            ]
            m.d.sync += result_sequence.eq(result_sequence + 1)
