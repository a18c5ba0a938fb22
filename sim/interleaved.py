"""A behavioural leaf of several sums: it runs passes of more than one tile before BF16 does."""

from amaranth.hdl import Cat, Module, Mux, Signal

from weft.hw.arith.mac import PlainMac

__all__ = ["interleaved"]


class _Interleaved(PlainMac):
    """A plain MAC whose sums go round SLOTS registers, as through an adder of so many stages."""

    SLOTS: int

    def elaborate(self, platform):
        m = Module()
        p_product = Signal.like(self.product())
        p_en, p_clear, p_preload = (Signal(name=f"p_{n}") for n in ("en", "clear", "preload"))
        line = [Signal(self.ACC, name=f"sum_{n}") for n in range(max(self.SLOTS, self.LATENCY - 1))]
        own = line[self.SLOTS - 1]
        start = Mux(p_clear, 0, Mux(p_preload, self.init, own))
        m.d.sync += [
            p_product.eq(self.product()),
            Cat(p_en, p_clear, p_preload).eq(Cat(self.en, self.clear, self.preload)),
            line[0].eq(Mux(p_en, start + p_product, own)),
            *(late.eq(early) for early, late in zip(line, line[1:], strict=False)),
        ]
        m.d.comb += self.sum.eq(line[self.LATENCY - 2])
        return m


def interleaved(slots, latency):
    """A leaf class of ``slots`` sums, each seen ``latency`` (2 or more) cycles after its step."""
    return type("Interleaved", (_Interleaved,), {"SLOTS": slots, "LATENCY": latency})
