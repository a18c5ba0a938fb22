"""A buffer that collects words of the result stream as the payload of a frame."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.buffers.bank import Bank
from weft.hw.output.stream_packer import Result

__all__ = ["PayloadBuffer"]


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
        each ``advance``.
    advance : In
        Pulse: move to the next byte; 1 bit.
    clear : In
        Pulse: start the next payload; 1 bit.
    """

    def __init__(self, *, bytes_out, depth, target):
        self.bytes_out = bytes_out
        self.depth = depth
        self.target = target
        super().__init__({
            "results": In(stream.Signature(Result(bytes_out=bytes_out))),
            "full": Out(1),
            "length": Out(range(depth + 1)),
            "meta": Out(data.StructLayout({"tag": 16, "last": 8, "status": 8})),
            "byte": Out(8),
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
