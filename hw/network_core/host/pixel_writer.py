"""The pixel writer: the bytes of a WRITE frame become vectors of the memory."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.interface import VectorWrite
from weft.hw.network_core.layouts import VectorAddress, add_vectors, in_memory, later_sum

__all__ = ["PixelPlacement", "PixelWriter"]


class PixelPlacement(data.StructLayout):
    """Where the data of a WRITE frame go: its fields in ``docs/network-core.md``."""

    def __init__(self, config):
        super().__init__({
            "address": VectorAddress(config), "run": 8, "pitch": 8, "pixels": 16,
            "row_step": VectorAddress(config),
        })


class PixelWriter(wiring.Component):
    """Writes each pixel as whole vectors; bytes of a vector without data are 0.

    The vectors between two pixels take a cycle each. Addresses beyond the memory are not written.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
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

    def __init__(self, config):
        self.config = config
        super().__init__({
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
        vector = Signal(8 * depth)
        pixel_end, row_end = Signal(), Signal()  # the last vector of its pixel, pixel of its row
        run_end = Signal()  # the next byte is the last one of its pixel

        following = add_vectors(m, address, 1, banks, "following")
        next_row = later_sum(m, first, place.row_step, banks, "next_row")
        inside = Signal()
        # Used two cycles after a change, or later.
        m.d.sync += [
            inside.eq(in_memory(self.config, address)), row_end.eq(row_left == 1),
        ]
        m.d.comb += [
            self.writes.payload.address.eq(address),
            self.writes.payload.data.eq(vector),
            self.writes.payload.enable.eq(-1),
        ]
        new_vector = [byte_index.eq(0), vector.eq(0)]

        with m.FSM():
            with m.State("FILL"):
                m.d.comb += [self.bytes.ready.eq(1), self.idle.eq(1)]
                with m.If(self.bytes.valid & self.bytes.ready):
                    m.d.sync += [
                        vector.word_select(byte_index, 8).eq(self.bytes.payload),
                        byte_index.eq(byte_index + 1), run_left.eq(run_left - 1),
                        run_end.eq((run_left == 2) & (place.run != 0)), pixel_end.eq(run_end),
                    ]
                    with m.If((byte_index == depth - 1) | run_end | self.last):
                        m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += self.writes.valid.eq(inside)
                with m.If(self.writes.ready | ~inside):
                    m.next = "WRITTEN"
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
