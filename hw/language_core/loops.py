"""`LoopNest`: nested loops and the addresses of their iterations."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LoopNest"]


class LoopNest(wiring.Component):
    """Nested loops; loop 0 is the innermost. Addresses need no multiplication.

    An address has the place of the latest start of each loop. When loop n advances, its place
    moves by its step, and the loops below it start from there.

    Parameters
    ----------
    levels : int
    count_bits : int
    addresses : dict
        Bits of each address, by name.

    Attributes
    ----------
    start : In, 1 bit
        Pulse: all loops start; the first iteration is there a cycle later.
    advance : In, 1 bit
        The next iteration follows. Ignored unless ``busy``.
    further : In, ``count_bits`` for each loop
        Iterations less 1. Stable while ``busy``.
    busy : Out, 1 bit
        There is an iteration.
    first : Out, 1 bit
        Of loop 0, while ``busy``.
    last : Out, 1 bit for each loop
        Loop n and all below it are in their last iteration, while ``busy``.
    odd : Out, 1 bit for each loop
        The iteration of the loop has an odd number; the first one has number 0.
    NAME_start, NAME_steps, NAME : In, In, Out
        For each address: the first one, the step of each loop (stable while ``busy``), and the
        address of the iteration.
    """

    def __init__(self, *, levels, count_bits, addresses):
        self.levels = levels
        self.names = tuple(addresses)
        ports = {}
        for name, bits in addresses.items():
            ports |= {
                f"{name}_start": In(bits), name: Out(bits),
                f"{name}_steps": In(data.ArrayLayout(bits, levels)),
            }
        super().__init__({
            "start": In(1), "advance": In(1),
            "further": In(data.ArrayLayout(count_bits, levels)),
            "busy": Out(1), "first": Out(1), "last": Out(levels), "odd": Out(levels), **ports,
        })

    def elaborate(self, platform):
        m = Module()
        left = [
            Signal(self.further[n].shape(), name=f"left_{n}", reset_less=True)
            for n in range(self.levels)
        ]
        places = {
            name: [
                Signal.like(getattr(self, name), name=f"{name}_{n}", reset_less=True)
                for n in range(self.levels)
            ]
            for name in self.names
        }
        # Registers, because so many others wait for them: a loop has no further iteration.
        ends = Signal(self.levels, reset_less=True)
        for n in range(self.levels):
            below = self.last[n - 1] if n else 1
            m.d.comb += self.last[n].eq(ends[n] & below)
        m.d.comb += [getattr(self, name).eq(places[name][0]) for name in self.names]
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), self.first.eq(1), self.odd.eq(0)]
            for n in range(self.levels):
                m.d.sync += [left[n].eq(self.further[n]), ends[n].eq(self.further[n] == 0)]
            for name, levels in places.items():
                m.d.sync += [place.eq(getattr(self, f"{name}_start")) for place in levels]
        with m.Elif(self.busy & self.advance):
            with m.If(self.last[-1]):
                m.d.sync += self.busy.eq(0)
            for n in reversed(range(self.levels)):
                with m.Elif(self.last[n - 1] if n else 1):
                    self._advance(m, n, left, ends, places)
        return m

    def _advance(self, m, n, left, ends, places):
        """Loop n advances, and those below it start again."""
        m.d.sync += [
            left[n].eq(left[n] - 1), ends[n].eq(left[n] == 1), self.first.eq(n > 0),
            self.odd[n].eq(~self.odd[n]),
        ]
        for below in range(n):
            m.d.sync += [
                left[below].eq(self.further[below]), ends[below].eq(self.further[below] == 0),
                self.odd[below].eq(0),
            ]
        for name, levels in places.items():
            following = levels[n] + getattr(self, f"{name}_steps")[n]
            m.d.sync += [place.eq(following) for place in levels[: n + 1]]
