"""A behavioural MAC cell with several integer sums, for fast simulation of multi-slot passes."""

from amaranth.hdl import Module, Mux, Signal, signed

from weft.hw.arith.mac import PlainMac

__all__ = ["interleaved_mac"]


class _InterleavedMac(PlainMac):
    """A plain MAC with sums that circulate through SLOTS registers, as in a pipelined adder."""

    SLOTS: int
    START = signed(32)

    def elaborate(self, platform):
        m = Module()
        # The product is delayed until the sum of its slot is in the last register.
        product, en = self.product(), self.en
        for stage in range(self.LATENCY - self.SLOTS):
            p_product, p_en = Signal.like(product, name=f"p_{stage}"), Signal(name=f"p_en_{stage}")
            m.d.sync += [p_product.eq(product), p_en.eq(en)]
            product, en = p_product, p_en
        sums = [Signal(self.ACC, name=f"sum_{n}") for n in range(self.SLOTS)]
        start = Mux(self.preload, self.init, Mux(self.clear, 0, sums[-1]))
        m.d.sync += sums[0].eq(start + Mux(en, product, 0))
        m.d.sync += [after.eq(before) for before, after in zip(sums, sums[1:], strict=False)]
        m.d.comb += self.sum.eq(sums[-1])
        return m


def interleaved_mac(slots, latency):
    """A MAC cell class of ``slots`` sums with a ``latency`` of more than ``slots`` cycles."""
    return type("InterleavedMac", (_InterleavedMac,), {"SLOTS": slots, "LATENCY": latency})
