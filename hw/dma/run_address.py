"""The address of a run: a stride on, the bytes of a run on, or back to where a slice began."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from weft.descriptors import DescriptorWord

__all__ = ["RunAddress"]

ADDRESS_BITS = 32


class RunAddress(wiring.Component):
    """Address of a run of bytes. One adder computes the next one, and loads the first one.

    ============== ====================================================================
    ``step`` with  adds
    ============== ====================================================================
    ``by_stride``  the stride: to the next line, or with K_MINOR to the next k
    ``undo``       ``undo_bytes``
    neither        ``last_byte + 1``: to the byte after the run
    ``restore``    nothing: it goes back to the saved address
    ============== ====================================================================

    The first address enters as a stride: the word ADDRESS goes to the stride and clears the
    address; the next word, STRIDE, adds it and then replaces the stride.

    Attributes
    ----------
    word, index, take : In
        As of `AddressGenerator`.
    step : In
        1 bit; pulse: compute the next address.
    by_stride, undo, restore : In
        1 bit each; as in the table.
    last_byte : In
        Bytes of the run, less one.
    undo_bytes : In
        32 bits, two's complement.
    save : In
        1 bit; pulse: save the address.
    addr : Out
        32 bits.
    """

    def __init__(self, *, last_byte):
        super().__init__({
            "word": In(32), "index": In(4), "take": In(1),
            "step": In(1), "by_stride": In(1), "undo": In(1), "restore": In(1),
            "last_byte": In(last_byte), "undo_bytes": In(ADDRESS_BITS),
            "save": In(1),
            "addr": Out(ADDRESS_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        addr, saved, stride = (
            Signal(ADDRESS_BITS, name=n, reset_less=True) for n in ("r_addr", "saved", "stride")
        )
        m.d.comb += self.addr.eq(addr)
        load_addr = self.take & (self.index == DescriptorWord.STRIDE)
        term = Mux(self.by_stride, stride, Mux(self.undo, self.undo_bytes, self.last_byte))
        total = (Cat(1, addr) + Cat(~self.by_stride & ~self.undo, term))[1:]
        with m.If(self.take & (self.index == DescriptorWord.ADDRESS)):
            m.d.sync += [stride.eq(self.word), addr.eq(0)]
        with m.If(load_addr):
            m.d.sync += stride.eq(self.word)
        with m.If(load_addr | self.step):
            m.d.sync += addr.eq(Mux(self.restore, saved, total))
        with m.If(self.save):
            m.d.sync += saved.eq(addr)
        return m
