"""The frame answers: answers, acknowledgements and the ends of runs, as frames to the host."""

from amaranth.hdl import Array, C, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.frames import PROGRAM_BIT, FrameType
from weft.hw.serial.crc import ByteCrc32
from weft.hw.serial.frame_receiver import FrameRequest, RequestOp
from weft.hw.serial.frame_sender import FrameHeader
from weft.hw.serial.frame_transmitter import NAK_TEXTS

__all__ = ["FrameAnswers"]

_BUSY = b"busy"  # text of an ERROR frame: START while another run is not over
_STATUS_BYTES = 8  # of NET_STATUS and NET_CYCLES


class FrameAnswers(wiring.Component):
    """Sends one frame at a time: answers to requests, then acknowledgements, then DONE.

    A host starts the core with START frames, and reads its memory. The base class of
    `weft.hw.network_core.host.host_port.HostAnswers` and
    `weft.hw.language_core.host_port.LanguageAnswers`, which know the registers of their core and a
    reader of its memory.

    Parameters
    ----------
    frames : weft.hw.serial.frame_receiver.ReceivedFrames
    ports : dict
        Further members.
    checks : bool
        READ_MEMORY can ask for the CRC of bytes.

    Attributes
    ----------
    request : In, stream of `weft.hw.serial.frame_receiver.FrameRequest`
    ack : In, stream of 8 bits
        Sequence numbers for ACK frames.
    executed : In, 1 bit
        All accepted frames were executed. READ and READ_MEMORY wait for it, and the answer to
        ABORT.
    done : In, stream of 8 bits
        Sequence number of the START frame whose run has ended.
    refused : In, stream of 8 bits
        Sequence number of a START frame that cannot be executed, because another run is not over.
    abort : Out, 1 bit
        Pulse: end the run.
    idle : Out, 1 bit
        No frame is in progress.
    frame : Out, stream of `weft.hw.serial.frame_sender.FrameHeader`
    payload : Out, stream of 8 bits
    """

    REGISTER_LATENCY: int  # cycles from an address to its register
    STATUS: int  # address of the first of the two registers in DONE

    def __init__(self, frames, ports, *, checks):
        self.checks = checks
        super().__init__({
            "request": In(stream.Signature(FrameRequest(frames))),
            "ack": In(stream.Signature(8)),
            "executed": In(1),
            "done": In(stream.Signature(8)),
            "refused": In(stream.Signature(8)),
            "abort": Out(1),
            "idle": Out(1),
            "frame": Out(stream.Signature(FrameHeader)),
            "payload": Out(stream.Signature(8)),
            **ports,
        })

    def reader(self, m):
        """Add the reader of the memory, and return it.

        It has the ports of `weft.hw.network_core.host.memory_port.MemoryBytes`, except ``reads``. A
        reader with the port ``program`` can read the program memory, too.
        """
        raise NotImplementedError

    def registers(self, m, address):
        """Add the registers; return the value of the one at ``address``.

        The value follows the address by REGISTER_LATENCY cycles.
        """
        raise NotImplementedError

    def address(self, value):
        """The address for the reader: from ``value``, the address field of READ_MEMORY."""
        raise NotImplementedError

    def result(self):
        """How many bytes of the memory follow the registers in DONE, and the address of the first.

        By default none.
        """
        return 0, 0

    def elaborate(self, platform):
        m = Module()
        memory = self.reader(m)
        has_program = hasattr(memory, "program")
        if self.checks:
            m.submodules.crc = crc = ByteCrc32()
            m.d.comb += [crc.data.eq(memory.bytes.payload), crc.include.eq(1)]
        address, words = Signal(8), Signal(8)  # of registers: the next one, and how many follow
        value = self.registers(m, address)
        # word: a register, a text or a CRC that is sent; wait: cycles until ``value`` is valid
        word, byte_index, wait = Signal(32), Signal(2), Signal(range(self.REGISTER_LATENCY + 1))
        checked = Signal()  # the frame has the CRC of bytes
        payload = self.payload

        m.d.sync += memory.start.eq(0)  # so it is a pulse, in the cycle after IDLE
        # A register keeps the comparison out of the next state. NEXT follows a change of ``words``
        # by two cycles or more, so it sees the comparison of the new number.
        no_words = Signal()
        m.d.sync += [self.abort.eq(0), no_words.eq(words == 0)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(1)
                m.d.sync += [byte_index.eq(0), wait.eq(self.REGISTER_LATENCY)]
                if self.checks:
                    m.d.comb += crc.start.eq(1)
                    m.d.sync += checked.eq(0)
                if has_program:
                    m.d.sync += memory.program.eq(0)
                self._select_frame(m, memory, checked, address, words, word)
            if self.checks:
                self._check(m, memory, crc, word)
            with m.State("ABORT"):
                with m.If(self.executed):
                    m.d.comb += self.request.ready.eq(1)
                    m.next = "FRAME"
            with m.State("FRAME"):
                m.d.comb += self.frame.valid.eq(1)
                with m.If(self.frame.ready):
                    m.next = "NEXT"
                    in_word = self.frame.payload.type == FrameType.ERROR
                    with m.If(in_word | checked if self.checks else in_word):
                        m.next = "BYTES"  # the text, or the CRC
            with m.State("NEXT"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(no_words):
                    m.next = "MEMORY"
                with m.Elif(wait == 0):
                    m.d.sync += [
                        word.eq(value), address.eq(address + 1), words.eq(words - 1),
                        wait.eq(self.REGISTER_LATENCY),
                    ]
                    m.next = "BYTES"
            with m.State("BYTES"):
                m.d.comb += [payload.valid.eq(1), payload.payload.eq(word[:8])]
                with m.If(payload.ready):
                    m.d.sync += [word.eq(word >> 8), byte_index.eq(byte_index + 1)]
                    with m.If(byte_index == 3):
                        m.next = "NEXT"
            with m.State("MEMORY"):
                m.d.comb += [
                    payload.valid.eq(memory.bytes.valid), memory.bytes.ready.eq(payload.ready),
                    payload.payload.eq(memory.bytes.payload),
                ]
                with m.If(memory.idle):
                    m.next = "IDLE"
        return m

    def _check(self, m, memory, crc, word):
        """The state that computes the CRC of bytes, instead of sending them."""
        with m.State("CHECK"):
            m.d.comb += [memory.bytes.ready.eq(1), crc.valid.eq(memory.bytes.valid)]
            m.d.sync += word.eq(crc.crc)
            # In the cycle of its start the reader is still idle.
            with m.If(memory.idle & crc.idle & ~memory.start):
                m.next = "FRAME"

    def _select_frame(self, m, memory, checked, address, words, word):
        """Select the next frame, if one is waiting; its header goes to ``frame``."""
        request, header = self.request.payload, self.frame.payload
        texts = Array(C(int.from_bytes(text, "little"), 32) for text in NAK_TEXTS)
        # The 8 bytes of READ_MEMORY: its address, and its bytes. The 4 bytes of READ lie behind
        # them, as in any `FrameRequest`: its address in bits 47..32, its count in bits 63..48.
        operands = request.operands
        reads = (request.op == RequestOp.READ) | (request.op == RequestOp.READ_MEMORY)
        with m.If(self.request.valid & (self.executed | ~reads)):
            m.d.sync += [header.sequence.eq(request.sequence), words.eq(0)]
            m.d.comb += self.request.ready.eq(1)
            m.next = "FRAME"
            with m.Switch(request.op):
                with m.Case(RequestOp.READ):
                    count = operands[48:56]
                    m.d.sync += [
                        header.type.eq(FrameType.REGISTERS), header.length.eq(count << 2),
                        words.eq(count), address.eq(operands[32:40]),
                    ]
                with m.Case(RequestOp.READ_MEMORY):
                    length = operands[32 : 32 + memory.length_bits]
                    m.d.sync += [header.type.eq(FrameType.DATA), header.length.eq(length)]
                    m.d.sync += [
                        memory.start.eq(1), memory.length.eq(length),
                        memory.address.eq(self.address(operands[:32])),
                    ]
                    if hasattr(memory, "program"):
                        m.d.sync += memory.program.eq(operands[PROGRAM_BIT])
                    if self.checks:
                        with m.If(operands[32 + PROGRAM_BIT]):
                            m.d.sync += [checked.eq(1), header.length.eq(4)]
                            m.next = "CHECK"
                with m.Case(RequestOp.ABORT):
                    m.d.sync += [
                        header.type.eq(FrameType.ABORTED), header.length.eq(0), self.abort.eq(1),
                    ]
                    m.d.comb += self.request.ready.eq(0)
                    m.next = "ABORT"
                with m.Case(RequestOp.NAK):
                    m.d.sync += [
                        header.type.eq(FrameType.ERROR), header.length.eq(4),
                        word.eq(texts[request.nak.as_value()]),
                    ]
        with m.Elif(self.ack.valid):
            m.d.comb += self.ack.ready.eq(1)
            m.d.sync += [
                header.type.eq(FrameType.ACK), header.sequence.eq(self.ack.payload),
                header.length.eq(0), words.eq(0),
            ]
            m.next = "FRAME"
        with m.Elif(self.refused.valid):
            m.d.comb += self.refused.ready.eq(1)
            m.d.sync += [
                header.type.eq(FrameType.ERROR), header.sequence.eq(self.refused.payload),
                header.length.eq(len(_BUSY)), words.eq(0),
                word.eq(int.from_bytes(_BUSY, "little")),
            ]
            m.next = "FRAME"
        with m.Elif(self.done.valid):
            size, first = self.result()
            m.d.comb += self.done.ready.eq(1)
            m.d.sync += [
                memory.start.eq(1), memory.length.eq(size), memory.address.eq(first),
                header.type.eq(FrameType.DONE), header.sequence.eq(self.done.payload),
                header.length.eq(size + _STATUS_BYTES), words.eq(_STATUS_BYTES // 4),
                address.eq(self.STATUS),
            ]
            m.next = "FRAME"

    def begin_runs(self, m, begin, sequence, executed, finished, may_begin=None):
        """Begin the run of a START frame, and send DONE when it has ended.

        After an abort, the START frames that were accepted before it are cancelled.

        Parameters
        ----------
        m : Module
            That of the port which has this block.
        begin : stream
            The runs to begin.
        sequence : Value
            Sequence number of the START frame on ``begin``.
        executed : Value
            As the port of this name.
        finished : Value
            Pulse: the run has ended.
        may_begin : Value, optional
            The core can begin a run; by default it always can.

        Returns
        -------
        Signal
            The run begins in this cycle, unless an abort comes.
        """
        running, cancel = Signal(), Signal()  # cancel: accepted START frames are dropped
        start = Signal()
        # Not before DONE of the last run is sent: it reads the status and the memory of this run.
        begins = begin.valid & self.idle & ~self.done.valid
        if may_begin is not None:
            begins &= may_begin
        m.d.sync += start.eq(0)
        with m.If(executed):
            m.d.sync += cancel.eq(0)
        with m.If(self.done.ready):
            m.d.sync += self.done.valid.eq(0)
        with m.If(cancel):
            m.d.comb += begin.ready.eq(1)
        with m.Elif(running):
            m.d.comb += [
                self.refused.valid.eq(begin.valid), begin.ready.eq(self.refused.ready),
            ]
        with m.Elif(begins):
            m.d.comb += begin.ready.eq(1)
            m.d.sync += [start.eq(1), running.eq(1), self.done.payload.eq(sequence)]
        with m.If(running & finished):
            m.d.sync += [running.eq(0), self.done.valid.eq(1)]
        m.d.comb += self.refused.payload.eq(sequence)
        with m.If(self.abort):
            m.d.sync += [running.eq(0), self.done.valid.eq(0), cancel.eq(1)]
        return start
