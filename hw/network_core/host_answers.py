"""The answers to the host: registers, bytes of the memory, results of lists, errors."""

from amaranth.hdl import Array, C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.frames import FrameType
from weft.hw.network_core.interface import NetworkStatus
from weft.hw.network_core.layouts import VectorAddress
from weft.hw.network_core.memory_bytes import MemoryBytes
from weft.hw.network_core.state_registers import StateRegisters
from weft.hw.serial.frame_receiver import NETWORK_FRAMES, FrameRequest, RequestOp
from weft.hw.serial.frame_sender import FrameHeader
from weft.hw.serial.frame_transmitter import NAK_TEXTS
from weft.network_core.registers import LATENCY, REGISTERS
from weft.network_core.states import NetworkState

__all__ = ["HostAnswers"]

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
    reads : Out, stream of `VectorAddress`
    read_valid : In, 1 bit
    read_data : In, ``read_vectors`` vectors
        As in `weft.hw.network_core.interface.NetworkInterface`.
    """

    def __init__(self, config):
        self.config = config
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
            "reads": Out(stream.Signature(VectorAddress(config))),
            "read_valid": In(1),
            "read_data": In(data.ArrayLayout(8 * config.array.depth, config.read_vectors)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = MemoryBytes(self.config, length_bits=11)
        connect(m, memory.reads, flipped(self.reads))
        m.d.comb += [
            memory.read_valid.eq(self.read_valid), memory.read_data.eq(self.read_data),
        ]
        address, words = Signal(8), Signal(8)  # of registers: the next one, and how many follow
        m.submodules.registers = registers = StateRegisters(self.config)
        m.d.comb += [registers.address.eq(address), registers.status.eq(self.status)]
        word, byte_index, wait = Signal(32), Signal(2), Signal(range(LATENCY + 1))
        payload = self.payload

        m.d.sync += memory.start.eq(0)  # a cycle after the frame was selected
        no_words = Signal()  # two cycles after a change of words, or later
        m.d.sync += [self.abort.eq(0), no_words.eq(words == 0)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(1)
                m.d.sync += [byte_index.eq(0), wait.eq(LATENCY)]
                self._select_frame(m, memory, address, words, word)
            with m.State("ABORT"):
                with m.If(self.executed):
                    m.d.comb += self.request.ready.eq(1)
                    m.next = "FRAME"
            with m.State("FRAME"):
                m.d.comb += self.frame.valid.eq(1)
                with m.If(self.frame.ready):
                    m.next = "NEXT"
                    with m.If(self.frame.payload.type == FrameType.ERROR):
                        m.next = "BYTES"  # the text is in word
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

    def _select_frame(self, m, memory, address, words, word):
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
                    length = operands[32:43]
                    start = VectorAddress(self.config).from_list(operands[:32])
                    m.d.sync += [header.type.eq(FrameType.DATA), header.length.eq(length)]
                    m.d.sync += [
                        memory.start.eq(1), memory.length.eq(length),
                        memory.address.eq(Cat(*start.values())),
                    ]
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
