"""The host port: executes the frames of a link on a network core, and answers them."""

from amaranth.hdl import Cat, Module, Mux, Signal
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
from weft.hw.serial.frame_answers import FrameAnswers
from weft.hw.serial.frame_receiver import NETWORK_FRAMES
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


class HostAnswers(FrameAnswers):
    """The `FrameAnswers` of a network core.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    status : In, `weft.hw.network_core.interface.NetworkStatus`
        Delayed by a cycle.
    reads : Out, `weft.hw.network_core.interface.ReadPort`
    program_reads : Out, the same; only with a program memory
    """

    REGISTER_LATENCY = LATENCY
    STATUS = REGISTERS.index("net_status")

    def __init__(self, config):
        self.config = config
        self.both = config.program_words > 0
        super().__init__(NETWORK_FRAMES, {
            "status": In(NetworkStatus(config)),
            "reads": Out(ReadPort(config)),
            **({"program_reads": Out(ReadPort(config))} if self.both else {}),
        }, checks=self.both)

    def reader(self, m):
        m.submodules.memory = memory = MemoryBytes(
            self.config, length_bits=CHECK_BITS if self.both else 11, both=self.both
        )
        if not self.both:
            connect(m, memory.reads, flipped(self.reads))
            return memory
        choose_memory(m, memory.program, memory.reads, self.reads, self.program_reads)
        return memory

    def registers(self, m, address):
        m.submodules.registers = registers = StateRegisters(self.config)
        m.d.comb += [registers.address.eq(address), registers.status.eq(self.status)]
        return registers.value

    def address(self, value):
        return Cat(*VectorAddress(self.config).from_list(value).values())

    def result(self):
        status = self.status
        size = Mux(status.state == NetworkState.DONE, status.result_bytes[:11], 0)
        return size, status.result


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
        begin = commands.list
        start = answers.begin_runs(m, begin, commands.sequence, executed, core.finished)
        # The fields of a START frame stay for more than a cycle after ``ready``.
        m.d.comb += [
            core.begin.eq(begin.payload), core.begin.valid.eq(start & ~answers.abort),
            core.abort.eq(answers.abort),
        ]
        if self.config.program_words:
            m.submodules.program = program = ProgramAccess(self.config)
            connect(m, commands.program_writes, program.writes)
            connect(m, answers.program_reads, program.reads)
            connect(m, flipped(core.axi), program.core)
            connect(m, program.memory, flipped(self.memory))
            m.d.comb += core.program_limit.eq(self.config.program_words)
        return m
