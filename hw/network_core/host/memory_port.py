"""The memory port: 32-bit words of a bus are written to the memory, or read from it.

`PixelWriter` and `MemoryBytes` convert between bytes and vectors; the host port has them, too.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from weft.hw.network_core.interface import ReadPort, VectorWrite
from weft.hw.network_core.layouts import (
    VectorAddress,
    add_vectors,
    in_memory,
    later_sum,
    writable,
)
from weft.network_core.config import has_single_port

__all__ = ["MemoryBytes", "MemoryPort", "PixelPlacement", "PixelWriter"]


def _inside(block, address, inside):
    """Whether ``block`` accesses the vector at an address.

    ``inside`` is the answer for the memory on the chip. An access behind the program memory is of
    what lies there: on a board, a `weft.hw.sdram.phase.PhaseRegister`.
    """
    if not block.both:
        return inside
    return Mux(block.program, address.bank < block.config.banks, inside)


class MemoryBytes(wiring.Component):
    """Reads vectors that follow each other; bytes beyond the memory on the chip are 0.

    It gives a byte a cycle. Before each vector are 2 cycles and the latency of a read.

    Parameters
    ----------
    config : NetworkCoreConfig
    length_bits : int
        Bits of ``length``.
    both : bool
        It reads the program memory, too.

    Attributes
    ----------
    program : In, 1 bit; only with ``both``
        Read the program memory. Valid from ``start`` on, until ``idle``.
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

    def __init__(self, config, *, length_bits, both=False):
        self.config = config
        self.length_bits = length_bits
        self.both = both
        super().__init__({
            **({"program": In(1)} if both else {}),
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
        m.d.sync += inside.eq(_inside(self, address, in_memory(self.config, address)))
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


class PixelPlacement(data.StructLayout):
    """Where the data of a WRITE frame go: its fields in ``docs/network-core.md``."""

    def __init__(self, config):
        super().__init__({
            "address": VectorAddress(config), "run": 8, "pitch": 8, "pixels": 16,
            "row_step": VectorAddress(config),
        })


class PixelWriter(wiring.Component):
    """Writes each pixel as whole vectors; bytes of a vector without data are 0.

    The vectors between two pixels take a cycle each. Beyond the memory on the chip nothing is
    written.

    The memory of a core with a microprogram gets zeros for a vector, and then each byte by itself:
    so no register collects a vector.

    Parameters
    ----------
    config : NetworkCoreConfig
    both : bool
        It writes the program memory, too.

    Attributes
    ----------
    program : In, 1 bit; only with ``both``
        Write the program memory. Valid as ``placement``.
    start : In, 1 bit
        Pulse: a frame begins. Allowed while ``idle``, without a byte.
    placement : In, `PixelPlacement`
        Valid from ``start`` until the last byte was written.
    bytes : In, stream of 8 bits
    last : In, 1 bit
        Valid with ``bytes``: the last byte of the frame.
    idle : Out, 1 bit
        All bytes so far were written, or wait in an unfinished vector.
    writes : Out, stream of `weft.hw.network_core.interface.VectorWrite`
    """

    def __init__(self, config, *, both=False):
        self.config = config
        self.both = both
        super().__init__({
            **({"program": In(1)} if both else {}),
            "start": In(1),
            "placement": In(PixelPlacement(config)),
            "bytes": In(stream.Signature(8)),
            "last": In(1),
            "idle": Out(1),
            "writes": Out(stream.Signature(VectorWrite(config))),
        })

    def elaborate(self, platform):
        m = Module()
        depth, banks = self.config.array.depth, self.config.banks
        place = self.placement
        address, first = Signal.like(place.address), Signal.like(place.address)  # first: of a pixel
        offset = Signal(8)  # vectors from first to address
        byte_index, run_left, row_left = Signal(range(depth)), Signal(8), Signal(16)
        pixel_end, row_end = Signal(), Signal()  # the last vector of its pixel, pixel of its row
        run_end = Signal()  # the next byte is the last one of its pixel

        following = add_vectors(m, address, 1, banks, "following")
        next_row = later_sum(m, first, place.row_step, banks, "next_row")
        inside = Signal()
        # Used two cycles after a change, or later.
        m.d.sync += [
            inside.eq(_inside(self, address, writable(self.config, address))),
            row_end.eq(row_left == 1),
        ]
        m.d.comb += self.writes.payload.address.eq(address)
        take = [
            run_left.eq(run_left - 1), run_end.eq((run_left == 2) & (place.run != 0)),
            pixel_end.eq(run_end),
        ]
        ends = (byte_index == depth - 1) | run_end | self.last
        write = self._write_bytes if has_single_port(self.config.array) else self._write_vectors

        with m.FSM():
            new_vector = write(m, byte_index, inside, take, ends)
            with m.State("WRITTEN"):  # a state of its own: ready arrives late
                m.d.sync += [*new_vector, address.eq(following), offset.eq(offset + 1)]
                m.next = "FILL"
                with m.If(pixel_end):
                    m.next = "NEXT_PIXEL"
            with m.State("NEXT_PIXEL"):
                m.d.sync += [
                    run_left.eq(place.run), run_end.eq(place.run == 1),
                    row_left.eq(row_left - 1), offset.eq(0),
                ]
                with m.If(row_end):
                    m.d.sync += [
                        address.eq(next_row), first.eq(next_row), row_left.eq(place.pixels),
                    ]
                    m.next = "FILL"
                with m.Elif(offset == place.pitch):
                    m.d.sync += first.eq(address)
                    m.next = "FILL"
                with m.Else():  # skip a vector between two pixels
                    m.d.sync += [
                        address.eq(following), offset.eq(offset + 1), row_left.eq(row_left),
                    ]
        with m.If(self.start):
            m.d.sync += [
                address.eq(place.address), first.eq(place.address), offset.eq(0),
                run_left.eq(place.run), run_end.eq(place.run == 1), row_left.eq(place.pixels),
                *new_vector,
            ]
        return m


    def _write_vectors(self, m, byte_index, inside, take, ends):
        """The states that collect a vector, and write it; returns what begins the next one."""
        vector = Signal.like(self.writes.payload.data, name="vector")
        m.d.comb += [self.writes.payload.data.eq(vector), self.writes.payload.enable.eq(-1)]
        with m.State("FILL"):
            m.d.comb += [self.bytes.ready.eq(1), self.idle.eq(1)]
            with m.If(self.bytes.valid & self.bytes.ready):
                m.d.sync += [
                    vector.word_select(byte_index, 8).eq(self.bytes.payload),
                    byte_index.eq(byte_index + 1), *take,
                ]
                with m.If(ends):
                    m.next = "WRITE"
        with m.State("WRITE"):
            m.d.comb += self.writes.valid.eq(inside)
            with m.If(self.writes.ready | ~inside):
                m.next = "WRITTEN"
        return [byte_index.eq(0), vector.eq(0)]

    def _write_bytes(self, m, byte_index, inside, take, ends):
        """The same, byte by byte."""
        byte, complete = Signal(8), Signal()
        empty = Signal(init=1)  # the vector in the memory is not 0 yet
        data, enable = self.writes.payload.data, self.writes.payload.enable
        m.d.comb += [
            data.eq(byte.replicate(len(enable))), enable.eq(Mux(empty, -1, 1 << byte_index)),
        ]
        written = self.writes.ready | ~inside
        with m.State("FILL"):
            m.d.comb += [self.bytes.ready.eq(~empty), self.idle.eq(1)]
            with m.If(self.bytes.valid):
                m.next = "WRITE"
                with m.If(empty):
                    m.next = "CLEAR"
                with m.Else():
                    m.d.sync += [byte.eq(self.bytes.payload), complete.eq(ends), *take]
        with m.State("CLEAR"):
            m.d.comb += self.writes.valid.eq(inside)
            with m.If(written):
                m.d.sync += empty.eq(0)
                m.next = "FILL"
        with m.State("WRITE"):
            m.d.comb += self.writes.valid.eq(inside)
            with m.If(written):
                m.d.sync += byte_index.eq(byte_index + 1)
                m.next = "FILL"
                with m.If(complete):
                    m.next = "WRITTEN"
        return [byte_index.eq(0), byte.eq(0), empty.eq(1)]


class MemoryPort(wiring.Component):
    """Transfers bytes, four in a word, the first one lowest; one transfer at a time.

    A word to write takes 4 cycles, and a vector 1 more. In a core with a microprogram a byte takes
    2 cycles, and a vector 3 more. A word to read takes 5 cycles, and a vector as many more as a
    read of the memory takes. Bytes of the last word beyond the transfer are ignored, or 0. Words
    that arrive while no write is in progress are dropped.

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
