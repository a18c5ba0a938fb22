"""The bytes of a part of the memory, one after the other, as the host reads them."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.interface import ReadPort
from weft.hw.network_core.layouts import VectorAddress, add_vectors, in_memory

__all__ = ["MemoryBytes"]


class MemoryBytes(wiring.Component):
    """Reads vectors that follow each other; the bytes of addresses beyond the memory are 0.

    It gives a byte a cycle. Before each vector are 2 cycles and the latency of a read.

    Parameters
    ----------
    config : NetworkCoreConfig
    length_bits : int
        Bits of ``length``.

    Attributes
    ----------
    start : In, 1 bit
        Pulse: ``address`` and ``length`` are valid. Allowed while ``idle``.
    address : In, `VectorAddress`
        Address of the first vector; its lowest byte comes first.
    length : In, ``length_bits`` bits
        Bytes to read.
    idle : Out, 1 bit
        No read is in progress. A start with ``length`` 0 leaves it 1.
    bytes : Out, stream of 8 bits
    reads : Out, `ReadPort`
        One read at a time; the first vector of its data is used.
    """

    def __init__(self, config, *, length_bits):
        self.config = config
        self.length_bits = length_bits
        super().__init__({
            "start": In(1),
            "address": In(VectorAddress(config)),
            "length": In(length_bits),
            "idle": Out(1),
            "bytes": Out(stream.Signature(8)),
            "reads": Out(ReadPort(config)),
        })

    def elaborate(self, platform):
        m = Module()
        depth, banks = self.config.array.depth, self.config.banks
        address = Signal(VectorAddress(self.config))
        following = add_vectors(m, address, 1, banks, "following")
        vector, index, inside = Signal(8 * depth), Signal(range(depth)), Signal()
        bytes_left = Signal(self.length_bits)
        m.d.sync += inside.eq(in_memory(self.config, address))
        m.d.comb += [self.reads.request.payload.eq(address), self.bytes.payload.eq(vector[:8])]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(1)
                m.d.sync += [address.eq(self.address), bytes_left.eq(self.length), index.eq(0)]
                with m.If(self.start & (self.length != 0)):
                    m.next = "ADDRESS"
            with m.State("ADDRESS"):  # inside follows address by one cycle
                m.next = "REQUEST"
            with m.State("REQUEST"):
                m.d.comb += self.reads.request.valid.eq(inside)
                with m.If(~inside):
                    m.d.sync += [vector.eq(0), address.eq(following)]
                    m.next = "BYTES"
                with m.Elif(self.reads.request.ready):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.sync += vector.eq(self.reads.data[0])
                with m.If(self.reads.data_valid):
                    m.d.sync += address.eq(following)
                    m.next = "BYTES"
            with m.State("BYTES"):
                m.d.comb += self.bytes.valid.eq(1)
                with m.If(self.bytes.ready):
                    m.d.sync += [
                        vector.eq(vector >> 8), index.eq(index + 1),
                        bytes_left.eq(bytes_left - 1),
                    ]
                    with m.If(bytes_left == 1):
                        m.next = "IDLE"
                    with m.Elif(index == depth - 1):
                        m.next = "ADDRESS"
        return m
