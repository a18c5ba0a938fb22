"""Reads a descriptor from the memory, and checks its opcode, version, and unused bits."""

from collections import defaultdict

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.delay import pipeline
from weft.hw.network_core.interface import MemoryWindow, ReadPort
from weft.hw.network_core.layouts import VectorAddress, add_vectors, within
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    LIST_VERSION,
    ListEnd,
    ListError,
    ListJob,
    ListLoad,
    ListLoop,
    places,
)

__all__ = ["DescriptorPart", "DescriptorReader"]

HEADER_BITS = 8  # opcode and version


def _kinds(config):
    """The classes of the descriptors that the core knows."""
    return (ListJob, ListLoop, ListEnd) if config.resident else (
        ListLoad, ListJob, ListLoop, ListEnd
    )


class DescriptorPart(data.StructLayout):
    """The part of a descriptor that one read returns: part ``index``, if ``valid``."""

    def __init__(self, config):
        bits = 8 * DescriptorReader.part_bytes(config)
        parts = 8 * DESCRIPTOR_BYTES // bits
        super().__init__({"valid": 1, "index": range(parts), "data": bits})


class DescriptorReader(wiring.Component):
    """Reads one descriptor after the other, ``read_vectors`` vectors a cycle.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    start : In, 1 bit
        Pulse while not ``busy``: reads the descriptor at ``address``.
    address : In, `VectorAddress`
    busy : Out, 1 bit
    reads : Out, `ReadPort`
    read_error : In, 1 bit, valid with the data of ``reads``
        The program memory answered the read with an error. Only with a program memory.
    window : In, `MemoryWindow`
        What may be read.
    part : Out, `DescriptorPart`
    done : Out, 1 bit
        Pulse, two cycles after the last part; the following outputs are valid.
    opcode : Out, 4 bits
    error : Out, `weft.network_core.descriptors.ListError`
        ADDRESS if a vector lies outside the limits, else BUS for a read with an error, else OPCODE
        for a wrong opcode or version, or if an unused bit is 1.
    following : Out, `VectorAddress`
        The address behind the descriptor.
    """

    @staticmethod
    def part_vectors(config):
        """Vectors of a descriptor that one read returns."""
        return min(config.read_vectors, -(-DESCRIPTOR_BYTES // config.array.depth))

    @staticmethod
    def part_bytes(config):
        """Bytes of a descriptor that one read returns."""
        return min(DESCRIPTOR_BYTES, config.array.depth * config.read_vectors)

    def __init__(self, config):
        self.config = config
        self.parts = DESCRIPTOR_BYTES // self.part_bytes(config)
        address = VectorAddress(config)
        super().__init__({
            "start": In(1), "address": In(address), "busy": Out(1),
            "reads": Out(ReadPort(config)),
            **({"read_error": In(1)} if config.program_words else {}),
            "window": In(MemoryWindow.of(config)),
            "part": Out(DescriptorPart(config)),
            "done": Out(1), "opcode": Out(4), "error": Out(ListError),
            "following": Out(address),
        })

    def elaborate(self, platform):
        m = Module()
        outside = Signal()
        reading = self._request(m, outside)
        self._check(m, outside, reading)
        return m

    def _request(self, m, outside):
        """Request all parts up to the first one outside; returns whether data are missing."""
        config = self.config
        left, in_flight = Signal(range(self.parts + 1)), Signal(range(self.parts + 1))
        advance, inside, issue = Signal(), Signal(), Signal()
        request = self.reads.request
        m.d.comb += [
            advance.eq(~request.valid | request.ready),
            inside.eq(within(
                config, self.following, self.part_vectors(config), self.window.base,
                self.window.limit,
            )),
        ]
        after = add_vectors(m, self.following, self.part_vectors(config), config.banks, "after")
        m.d.comb += issue.eq(advance & (left != 0) & inside)
        with m.If(advance):
            m.d.sync += [request.valid.eq(issue), request.payload.eq(self.following)]
            with m.If(left != 0):
                m.d.sync += [self.following.eq(after), left.eq(left - 1)]
                with m.If(~inside):
                    m.d.sync += [outside.eq(1), left.eq(0)]
        m.d.sync += in_flight.eq(in_flight + issue - (self.reads.data_valid & self.busy))
        with m.If(self.start):
            m.d.sync += [self.following.eq(self.address), left.eq(self.parts), outside.eq(0)]
        return (in_flight != 0) | (left != 0)

    def _check(self, m, outside, reading):
        """Check the parts as they arrive, in two cycles.

        The first cycle joins the bits of each group: bits that are unused in the same descriptors.
        The second one, with ``g_valid``, tells whether a group applies to this part.
        """
        part = self.part
        bad_header, bad, g_valid = Signal(), Signal(), Signal()
        g_index = Signal.like(part.index)
        bits = pipeline(m, self.reads.data.as_value()[: len(part.data)], 1, "part_data")
        m.d.comb += part.data.eq(bits)
        m.d.sync += [
            part.valid.eq(self.reads.data_valid & self.busy),
            g_valid.eq(part.valid), g_index.eq(part.index),
        ]
        with m.If(part.valid):
            m.d.sync += part.index.eq(part.index + 1)
            with m.If(part.index == 0):
                header = part.data[:HEADER_BITS]
                known = header.matches(*(
                    kind.OPCODE | LIST_VERSION << 4 for kind in _kinds(self.config)
                ))
                m.d.sync += [self.opcode.eq(header), bad_header.eq(~known)]
        found = []
        for number, (unused, bits) in enumerate(sorted(self._unused().items(), key=str)):
            group = Signal(name=f"g_unused_{number}")
            m.d.sync += group.eq(Cat(part.data[bit] for bit in bits).any())
            applies = Cat(
                (self.opcode == opcode) & (g_index == index) for opcode, index in unused
            ).any()
            found.append(group & applies)
        with m.If(g_valid):
            m.d.sync += bad.eq(bad | Cat(found).any())

        error = Mux(bad | bad_header, ListError.OPCODE, ListError.NONE)
        if self.config.program_words:
            failed = Signal()
            with m.If(self.start):
                m.d.sync += failed.eq(0)
            with m.Elif(self.reads.data_valid & self.read_error):
                m.d.sync += failed.eq(1)
            error = Mux(failed, ListError.BUS, error)
        m.d.comb += [
            self.done.eq(self.busy & ~reading & ~part.valid & ~g_valid),
            self.error.eq(Mux(outside, ListError.ADDRESS, error)),
        ]
        with m.If(self.done):
            m.d.sync += self.busy.eq(0)
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), bad.eq(0), part.index.eq(0)]

    def _unused(self):
        """Bits of a part that are unused in the same descriptors.

        Returns a dict: pairs (opcode, index of the part) -> bits of the part.
        """
        width = 8 * self.part_bytes(self.config)
        unused = defaultdict(set)
        for kind in _kinds(self.config):
            used = {*range(HEADER_BITS)}
            for place in places(kind, self.config):
                first = 32 * place.word + place.low
                used |= {*range(first, first + place.bits)}
            for bit in range(8 * DESCRIPTOR_BYTES):
                if bit not in used:
                    unused[bit % width].add((int(kind.OPCODE), bit // width))
        groups = defaultdict(list)
        for bit, descriptors in unused.items():
            groups[tuple(sorted(descriptors))].append(bit)
        return groups
