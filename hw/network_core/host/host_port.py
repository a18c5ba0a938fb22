"""The host port: executes the frames of a link on a network core, and answers them."""

from amaranth.hdl import Array, C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.frames import CHECK_BITS, PROGRAM_BIT, WRITE_FIELDS, FrameType
from weft.hw.dma.axi import Axi4
from weft.hw.network_core.host.memory_port import MemoryBytes, PixelWriter
from weft.hw.network_core.host.program_access import ProgramAccess
from weft.hw.network_core.interface import (
    ListBegin,
    NetworkInterface,
    NetworkStatus,
    ReadPort,
    StateRegisters,
    VectorWrite,
    choose_memory,
    stream_by_memory,
)
from weft.hw.network_core.layouts import VectorAddress
from weft.hw.serial.crc import ByteCrc32
from weft.hw.serial.frame_receiver import NETWORK_FRAMES, FrameRequest, RequestOp
from weft.hw.serial.frame_sender import FrameHeader
from weft.hw.serial.frame_transmitter import NAK_TEXTS
from weft.hw.serial.link import HostFrames
from weft.hw.stream.fifo import SkidBuffer
from weft.network_core.config import has_single_port
from weft.network_core.descriptors import ON_CHIP, NetworkState
from weft.network_core.register_map import LATENCY, REGISTERS

__all__ = ["HostAnswers", "HostCommands", "HostPort"]

_HEADER, _START = 6, 8  # bytes of a header without SYNC, and of START's payload


class HostCommands(wiring.Component):
    """Writes the data of WRITE frames, and begins lists.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    commands : In, stream of 8 bits
        Frames: type, sequence number, length (32 bits), payload.
    idle : Out, 1 bit
        The last byte of a frame was executed, and no frame has begun.
    writes : Out, stream of `weft.hw.network_core.interface.VectorWrite`
    program_writes : Out, stream of the same; only with a program memory
    list : Out, stream of `weft.hw.network_core.interface.ListBegin`
        A list to begin. Its ``valid`` repeats the one of the stream.
    sequence : Out, 8 bits
        Sequence number of the START frame on ``list``.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "commands": In(stream.Signature(8)),
            "idle": Out(1),
            "writes": Out(stream.Signature(VectorWrite(config))),
            **({
                "program_writes": Out(stream.Signature(VectorWrite(config))),
            } if config.program_words else {}),
            "list": Out(stream.Signature(ListBegin(config))),
            "sequence": Out(8),
        })

    def elaborate(self, platform):
        m = Module()
        both = self.config.program_words > 0
        m.submodules.writer = writer = PixelWriter(self.config, both=both)
        commands = self.commands

        def address(value):
            return Cat(*VectorAddress(self.config).from_list(value).values())

        fields = Signal(8 * WRITE_FIELDS)  # the last bytes: header, or fields of the payload
        frame_type = Signal(8)
        missing = Signal(range(WRITE_FIELDS + 1))  # bytes until the fields are complete
        length = Signal(16)  # bytes of the payload that did not arrive
        complete, last, no_more = Signal(), Signal(), Signal()  # missing is 0; length is 1, is 0
        fire, in_data = Signal(), Signal()
        m.d.comb += fire.eq(commands.valid & commands.ready)
        self._count(m, fire, missing, length, complete, last, no_more)
        with m.If(fire & ~in_data):
            m.d.sync += fields.eq(Cat(fields, commands.payload)[8:])
        place, begin, start = writer.placement, self.list.payload, fields[-8 * _START:]
        self._name_memories(m, writer, fields, start)
        m.d.comb += [
            place.address.eq(address(fields[:32])), place.run.eq(fields[32:40]),
            place.pitch.eq(fields[40:48]), place.pixels.eq(fields[48:64]),
            place.row_step.eq(address(fields[64:96])),
            begin.valid.eq(self.list.valid), begin.list.eq(address(start[:32])),
            begin.log.eq(address(start[32:])),
        ]
        data_in, passed = self._data(m, writer, last)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(~commands.valid)
                m.d.sync += [missing.eq(_HEADER), complete.eq(0)]
                m.next = "IDLE"
                with m.If(commands.valid):
                    m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += commands.ready.eq(~complete)
                with m.If(complete):
                    header = fields[-8 * _HEADER:]
                    m.d.sync += [
                        frame_type.eq(header[:8]), self.sequence.eq(header[8:16]),
                        length.eq(header[16:32]), missing.eq(WRITE_FIELDS), complete.eq(0),
                        last.eq(header[16:32] == 1), no_more.eq(header[16:32] == 0),
                    ]
                    m.next = "FIELDS"
            with m.State("FIELDS"):
                with m.If(no_more):  # no data follow
                    m.next = "END"
                    with m.If(frame_type == FrameType.START):
                        m.next = "BEGIN"
                with m.Elif(complete):
                    m.d.comb += writer.start.eq(1)
                    m.next = "DATA"
                with m.Else():
                    m.d.comb += commands.ready.eq(1)
            with m.State("DATA"):
                m.d.comb += [
                    in_data.eq(1), data_in.valid.eq(commands.valid),
                    commands.ready.eq(data_in.ready),
                ]
                with m.If(fire & last):
                    m.next = "END"
            with m.State("BEGIN"):
                m.d.comb += self.list.valid.eq(1)
                with m.If(self.list.ready):
                    m.next = "END"
            with m.State("END"):
                with m.If(writer.idle & passed):
                    m.next = "IDLE"
        return m

    def _name_memories(self, m, writer, fields, start):
        """The memory of a WRITE, and that of the list of a START."""
        if not self.config.program_words:
            connect(m, writer.writes, flipped(self.writes))
            return
        m.d.comb += [
            writer.program.eq(fields[PROGRAM_BIT]),
            self.list.payload.on_chip.eq(start[ON_CHIP.bit_length() - 1]),
        ]
        stream_by_memory(m, writer.program, writer.writes, self.writes, self.program_writes)

    def _data(self, m, writer, last):
        """Connect the data of WRITE; their stream to ``writer``, and whether it has taken them.

        The data pass a register, so that nothing waits for the memory in the same cycle. A core
        with a microprogram has a slow clock, and few cells.
        """
        if has_single_port(self.config.array):
            m.d.comb += [writer.bytes.payload.eq(self.commands.payload), writer.last.eq(last)]
            return writer.bytes, 1
        m.submodules.skid = skid = SkidBuffer(data.StructLayout({"byte": 8, "last": 1}))
        m.d.comb += [
            skid.i.payload.byte.eq(self.commands.payload), skid.i.payload.last.eq(last),
            writer.bytes.payload.eq(skid.o.payload.byte), writer.last.eq(skid.o.payload.last),
            writer.bytes.valid.eq(skid.o.valid), skid.o.ready.eq(writer.bytes.ready),
        ]
        return skid.i, ~skid.o.valid

    @staticmethod
    def _count(m, fire, missing, length, complete, last, no_more):
        """Count the bytes of a frame."""
        with m.If(fire):
            m.d.sync += [
                missing.eq(missing - 1), length.eq(length - 1), complete.eq(missing == 1),
                last.eq(length == 2), no_more.eq(length == 1),
            ]


_BUSY = b"busy"  # text of an ERROR frame: START while a list runs
_STATUS_BYTES = 8  # of NET_STATUS and NET_CYCLES


class HostAnswers(wiring.Component):
    """Sends one frame at a time: answers to requests, then acknowledgements, then DONE.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    request : In, stream of `weft.hw.serial.frame_receiver.FrameRequest`
    ack : In, stream of 8 bits
        Sequence numbers for ACK frames.
    executed : In, 1 bit
        All accepted frames were executed. READ and READ_MEMORY wait for it, and the answer to
        ABORT.
    status : In, `weft.hw.network_core.interface.NetworkStatus`
        Delayed by a cycle.
    done : In, stream of 8 bits
        Sequence number of the START frame whose list has ended.
    refused : In, stream of 8 bits
        Sequence number of a START frame that cannot be executed, because a list runs.
    abort : Out, 1 bit
        Pulse: end the running list.
    idle : Out, 1 bit
        No frame is in progress.
    frame : Out, stream of `weft.hw.serial.frame_sender.FrameHeader`
    payload : Out, stream of 8 bits
    reads : Out, `weft.hw.network_core.interface.ReadPort`
    program_reads : Out, the same; only with a program memory
    """

    def __init__(self, config):
        self.config = config
        self.both = config.program_words > 0
        super().__init__({
            "request": In(stream.Signature(FrameRequest(NETWORK_FRAMES))),
            "ack": In(stream.Signature(8)),
            "executed": In(1),
            "status": In(NetworkStatus(config)),
            "done": In(stream.Signature(8)),
            "refused": In(stream.Signature(8)),
            "abort": Out(1),
            "idle": Out(1),
            "frame": Out(stream.Signature(FrameHeader)),
            "payload": Out(stream.Signature(8)),
            "reads": Out(ReadPort(config)),
            **({"program_reads": Out(ReadPort(config))} if self.both else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = MemoryBytes(
            self.config, length_bits=CHECK_BITS if self.both else 11, both=self.both
        )
        crc = self._connect_memories(m, memory)
        address, words = Signal(8), Signal(8)  # of registers: the next one, and how many follow
        m.submodules.registers = registers = StateRegisters(self.config)
        m.d.comb += [registers.address.eq(address), registers.status.eq(self.status)]
        word, byte_index, wait = Signal(32), Signal(2), Signal(range(LATENCY + 1))
        checked = Signal()  # the frame has the CRC of bytes
        payload = self.payload

        m.d.sync += memory.start.eq(0)  # a cycle after the frame was selected
        no_words = Signal()  # two cycles after a change of words, or later
        m.d.sync += [self.abort.eq(0), no_words.eq(words == 0)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(1)
                m.d.sync += [byte_index.eq(0), wait.eq(LATENCY)]
                if self.both:
                    m.d.comb += crc.start.eq(1)
                    m.d.sync += [checked.eq(0), memory.program.eq(0)]
                self._select_frame(m, memory, checked, address, words, word)
            if self.both:
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
                    with m.If(in_word | checked if self.both else in_word):
                        m.next = "BYTES"  # the text, or the CRC
            with m.State("NEXT"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(no_words):
                    m.next = "MEMORY"
                with m.Elif(wait == 0):
                    m.d.sync += [
                        word.eq(registers.value), address.eq(address + 1), words.eq(words - 1),
                        wait.eq(LATENCY),
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

    def _connect_memories(self, m, memory):
        """Connect the reads of ``memory``; returns the CRC of what it reads."""
        if not self.both:
            connect(m, memory.reads, flipped(self.reads))
            return None
        choose_memory(m, memory.program, memory.reads, self.reads, self.program_reads)
        m.submodules.crc = crc = ByteCrc32()
        m.d.comb += [crc.data.eq(memory.bytes.payload), crc.include.eq(1)]
        return crc

    def _check(self, m, memory, crc, word):
        """The state that computes the CRC of bytes, instead of sending them."""
        with m.State("CHECK"):
            m.d.comb += [memory.bytes.ready.eq(1), crc.valid.eq(memory.bytes.valid)]
            m.d.sync += word.eq(crc.crc)
            with m.If(memory.idle & crc.idle & ~memory.start):
                m.next = "FRAME"

    def _select_frame(self, m, memory, checked, address, words, word):
        """Select the next frame, if one is waiting; its header goes to ``frame``."""
        request, status, header = self.request.payload, self.status, self.frame.payload
        texts = Array(C(int.from_bytes(text, "little"), 32) for text in NAK_TEXTS)
        operands = request.operands
        executed_op = (request.op == RequestOp.READ) | (request.op == RequestOp.READ_MEMORY)
        with m.If(self.request.valid & (self.executed | ~executed_op)):
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
                    start = VectorAddress(self.config).from_list(operands[:32])
                    m.d.sync += [header.type.eq(FrameType.DATA), header.length.eq(length)]
                    m.d.sync += [
                        memory.start.eq(1), memory.length.eq(length),
                        memory.address.eq(Cat(*start.values())),
                    ]
                    if self.both:
                        m.d.sync += memory.program.eq(operands[PROGRAM_BIT])
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
            result = Mux(status.state == NetworkState.DONE, status.result_bytes[:11], 0)
            m.d.comb += self.done.ready.eq(1)
            m.d.sync += [
                memory.start.eq(1), memory.length.eq(result), memory.address.eq(status.result),
                header.type.eq(FrameType.DONE), header.sequence.eq(self.done.payload),
                header.length.eq(result + _STATUS_BYTES), words.eq(_STATUS_BYTES // 4),
                address.eq(REGISTERS.index("net_status")),
            ]
            m.next = "FRAME"


class HostPort(wiring.Component):
    """Translates between frames (``docs/network-core.md``) and the ports of a network core.

    A list may use the whole memory: ``core.window`` is constant. So are the base and the limit of
    the program memory.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    frames : In, `weft.hw.serial.link.HostFrames`
    core : Out, `weft.hw.network_core.interface.NetworkInterface`
    memory : Out, `weft.hw.dma.axi.Axi4`; only with a program memory
        The memory with the lists and weights, for the core and for the frames.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "frames": In(HostFrames()),
            "core": Out(NetworkInterface(config)),
            **({
                "memory": Out(Axi4(data_bytes=config.beat_bytes)),
            } if config.program_words else {}),
        })

    def elaborate(self, platform):
        m = Module()
        frames, core = self.frames, self.core
        m.submodules.commands = commands = HostCommands(self.config)
        m.submodules.answers = answers = HostAnswers(self.config)
        connect(m, flipped(frames.commands), commands.commands)
        connect(m, flipped(frames.request), answers.request)
        connect(m, flipped(frames.ack), answers.ack)
        connect(m, answers.frame, flipped(frames.frame))
        connect(m, answers.payload, flipped(frames.payload))
        connect(m, commands.writes, flipped(core.writes))
        connect(m, answers.reads, flipped(core.reads))
        executed = Signal()  # all accepted frames were executed, in the cycle before
        m.d.comb += [
            answers.executed.eq(executed), core.window.limit.eq(self.config.words),
        ]
        m.d.sync += executed.eq(commands.idle & ~frames.pending)
        # Where flip-flops are scarce the status has no register of its own.
        domain = "comb" if self.config.array.family.serial_epilogue else "sync"
        m.d[domain] += answers.status.eq(core.status)
        self._begin_lists(m, commands, answers, executed)
        if self.config.program_words:
            m.submodules.program = program = ProgramAccess(self.config)
            connect(m, commands.program_writes, program.writes)
            connect(m, answers.program_reads, program.reads)
            connect(m, flipped(core.axi), program.core)
            connect(m, program.memory, flipped(self.memory))
            m.d.comb += core.program_limit.eq(self.config.program_words)
        return m

    def _begin_lists(self, m, commands, answers, executed):
        """Begin the list of a START frame, and send DONE when it has ended.

        After an abort, the START frames that were accepted before it are cancelled.
        """
        core, begin = self.core, commands.list
        running, cancel = Signal(), Signal()
        start = Signal()  # it begins in this cycle, unless an abort comes
        m.d.sync += start.eq(0)
        # The fields of a START frame stay for more than a cycle after ``ready``.
        m.d.comb += [core.begin.eq(begin.payload), core.begin.valid.eq(start & ~answers.abort)]
        with m.If(executed):
            m.d.sync += cancel.eq(0)
        with m.If(answers.done.ready):
            m.d.sync += answers.done.valid.eq(0)
        with m.If(cancel):
            m.d.comb += begin.ready.eq(1)
        with m.Elif(running):
            m.d.comb += [
                answers.refused.valid.eq(begin.valid), begin.ready.eq(answers.refused.ready),
            ]
        with m.Elif(begin.valid & answers.idle & ~answers.done.valid):
            m.d.comb += begin.ready.eq(1)
            m.d.sync += [
                start.eq(1), running.eq(1), answers.done.payload.eq(commands.sequence),
            ]
        with m.If(running & core.finished):
            m.d.sync += [running.eq(0), answers.done.valid.eq(1)]
        m.d.comb += [core.abort.eq(answers.abort), answers.refused.payload.eq(commands.sequence)]
        with m.If(answers.abort):
            m.d.sync += [running.eq(0), answers.done.valid.eq(0), cancel.eq(1)]
