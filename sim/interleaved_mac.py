"""A behavioural leaf of several integer sums: passes of more than one tile, quick to simulate."""

from amaranth.hdl import Module, Mux, Signal, signed

from weft.hw.arith.mac import PlainMac

__all__ = ["interleaved_mac"]


class _Interleaved(PlainMac):
    """A plain MAC whose sums go round SLOTS registers, as through an adder of so many stages."""

    SLOTS: int
    START = signed(32)

    def elaborate(self, platform):
        m = Module()
        # The product waits until the sum of its slot comes round.
        product, en = self.product(), self.en
        for stage in range(self.LATENCY - self.SLOTS):
            p_product, p_en = Signal.like(product, name=f"p_{stage}"), Signal(name=f"p_en_{stage}")
            m.d.sync += [p_product.eq(product), p_en.eq(en)]
            product, en = p_product, p_en
        line = [Signal(self.ACC, name=f"sum_{n}") for n in range(self.SLOTS)]
        start = Mux(self.preload, self.init, Mux(self.clear, 0, line[-1]))
        m.d.sync += line[0].eq(start + Mux(en, product, 0))
        m.d.sync += [late.eq(early) for early, late in zip(line, line[1:], strict=False)]
        m.d.comb += self.sum.eq(line[-1])
        return m


def interleaved_mac(slots, latency):
    """A leaf class of ``slots`` sums, each seen ``latency`` (more than slots) cycles later."""
    return type("Interleaved", (_Interleaved,), {"SLOTS": slots, "LATENCY": latency})
