"""The memory port: 32-bit words of a bus are written to the memory, or read from it."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.network_core.host.memory_bytes import MemoryBytes
from weft.hw.network_core.host.pixel_writer import PixelPlacement, PixelWriter
from weft.hw.network_core.interface import ReadPort, VectorWrite

__all__ = ["MemoryPort"]


class MemoryPort(wiring.Component):
    """Transfers bytes, four in a word, the first one lowest; one transfer at a time.

    A word to write takes 4 cycles, and a vector 1 more. A word to read takes 5 cycles, and a vector
    as many more as a read of the memory takes. Bytes of the last word beyond the transfer are
    ignored, or 0. Words that arrive while no write is in progress are dropped.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    write, read : In, 1 bit each
        Pulses: start a transfer of ``count`` bytes. Allowed while ``idle``.
    placement : In, `PixelPlacement`
        Valid with ``write`` and ``read``; a read uses its address only.
    count : In, 32 bits
        Valid with ``write`` and ``read``. 0: nothing is transferred.
    idle : Out, 1 bit
        No transfer is in progress: the memory has all data of the writes, and all words that were
        read have left.
    written : In, stream of 32 bits
        Data to write.
    found : Out, stream of 32 bits
        Data that were read.
    writes, reads
        As in `weft.hw.network_core.interface.NetworkInterface`.
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "write": In(1), "read": In(1),
            "placement": In(PixelPlacement(config)),
            "count": In(32),
            "idle": Out(1),
            "written": In(stream.Signature(32)),
            "found": Out(stream.Signature(32)),
            "writes": Out(stream.Signature(VectorWrite(config))),
            "reads": Out(ReadPort(config)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.writer = writer = PixelWriter(self.config)
        m.submodules.reader = reader = MemoryBytes(self.config, length_bits=32)
        connect(m, writer.writes, flipped(self.writes))
        connect(m, reader.reads, flipped(self.reads))
        m.d.comb += [
            writer.placement.eq(self.placement), reader.address.eq(self.placement.address),
            reader.length.eq(self.count),
        ]
        left = Signal(32)  # bytes that were not transferred
        word, index = Signal(32), Signal(2)
        last, take = Signal(), Signal()  # take: a byte passes
        m.d.comb += [last.eq(left == 1), writer.last.eq(last), self.found.payload.eq(word)]
        with m.If(take):
            m.d.sync += [left.eq(left - 1), index.eq(index + 1)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [self.idle.eq(1), self.written.ready.eq(1)]
                m.d.sync += [left.eq(self.count), index.eq(0), word.eq(0)]
                with m.If(self.count != 0):
                    m.d.comb += [writer.start.eq(self.write), reader.start.eq(self.read)]
                    with m.If(self.write):
                        m.next = "WORD"
                    with m.Elif(self.read):
                        m.next = "READ"
            with m.State("WORD"):
                m.d.comb += self.written.ready.eq(1)
                m.d.sync += word.eq(self.written.payload)
                with m.If(self.written.valid):
                    m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += [
                    writer.bytes.valid.eq(1), writer.bytes.payload.eq(word[:8]),
                    take.eq(writer.bytes.ready),
                ]
                with m.If(take):
                    m.d.sync += word.eq(word >> 8)
                    with m.If(last):
                        m.next = "END"
                    with m.Elif(index == 3):
                        m.d.comb += self.written.ready.eq(1)
                        m.d.sync += word.eq(self.written.payload)
                        with m.If(~self.written.valid):
                            m.next = "WORD"
            with m.State("READ"):
                m.d.comb += [reader.bytes.ready.eq(1), take.eq(reader.bytes.valid)]
                with m.If(take):
                    m.d.sync += word.word_select(index, 8).eq(reader.bytes.payload)
                    with m.If(last | (index == 3)):
                        m.next = "FOUND"
            with m.State("FOUND"):
                m.d.comb += self.found.valid.eq(1)
                with m.If(self.found.ready):
                    m.d.sync += word.eq(0)
                    m.next = "READ"
                    with m.If(left == 0):
                        m.next = "END"
            with m.State("END"):
                with m.If(writer.idle & reader.idle):
                    m.next = "IDLE"
        return m
