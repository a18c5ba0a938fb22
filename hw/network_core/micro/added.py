"""The vector of the added map that belongs to a tile, and its bytes one by one."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.hw.network_core.interface import MemoryWindow
from weft.hw.network_core.micro.memory_port import PortRequest

__all__ = ["AddedVector"]


class AddedVector(wiring.Component):
    """Reads a vector for each tile, when the bytes of the tile before have been taken.

    Parameters
    ----------
    cols : int

    Attributes
    ----------
    tile : In, 1 bit
        Pulse: a tile needs its vector. Not while ``pending`` is 1.
    cols : In; first : In, 1 bit; start : In, 16 bits
        Of the tile: its columns, whether it is the first one of a pixel, and the first vector of
        that pixel, which stays until the vector was read.
    pending : Out, 1 bit
        The vector of a tile was not read yet.
    window : In, `weft.hw.network_core.interface.MemoryWindow` of 16 bits
    read : Out, `PortRequest`; read_ready : In, 1 bit; read_data : In, 32 bits
        The data follow a cycle after ``read_ready``.
    take : In, 1 bit
        Takes ``value``.
    value : Out, signed 8 bits
    address_error : Out, 1 bit
        The vector lies beyond the window: its data must not be used.
    """

    def __init__(self, *, cols):
        super().__init__({
            "tile": In(1), "cols": In(range(cols + 1)), "first": In(1), "start": In(16),
            "pending": Out(1), "window": In(MemoryWindow(16)),
            "read": Out(PortRequest(write=False)), "read_ready": In(1), "read_data": In(32),
            "take": In(1), "value": Out(signed(8)), "address_error": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        vector, first = Signal(32), Signal()
        left, cols = Signal.like(self.cols), Signal.like(self.cols)
        following, arrives, wants, inside = Signal(16), Signal(), Signal(), Signal()
        address = self.read.address
        # The address is checked a cycle before the read.
        m.d.sync += [
            wants.eq(self.pending & (left == 0) & ~self.read_ready & ~arrives),
            inside.eq((address >= self.window.base) & (address < self.window.limit)),
        ]
        m.d.comb += [
            address.eq(Mux(first, self.start, following)),
            self.read.valid.eq(wants), self.address_error.eq(wants & ~inside),
            self.value.eq(vector[:8]),
        ]
        m.d.sync += arrives.eq(self.read_ready)
        with m.If(self.take):
            m.d.sync += [vector.eq(vector >> 8), left.eq(left - 1)]
        with m.If(self.read_ready):
            m.d.sync += [following.eq(address + 1), self.pending.eq(0)]
        with m.If(arrives):
            m.d.sync += [vector.eq(self.read_data), left.eq(cols)]
        with m.If(self.tile):
            m.d.sync += [self.pending.eq(1), cols.eq(self.cols), first.eq(self.first)]
        return m
