"""A queue as one would draw it."""

from amaranth.hdl import Cat, Mux, Signal

__all__ = ["Row", "count"]


def count(bits):
    """How many of ``bits`` are 1."""
    return sum(bits[n] for n in range(len(bits)))


class Row:
    """What was put and is not yet taken, the oldest first, for rules to look at.

    True as long as nothing is put where it is full, nor taken where it is empty.

    Parameters
    ----------
    m : Module
    name : str
    depth : int
    put, takes : Value
        In this cycle.
    value : Value
        What is put.

    Attributes
    ----------
    there : Signal
        A bit for each place.
    values : list of Signal
    """

    def __init__(self, m, name, depth, *, put, value, takes):
        self.there = Signal(depth, name=f"{name}_there")
        self.values = [Signal(len(value), name=f"{name}_{n}") for n in range(depth)]
        left = Signal.like(self.there, name=f"{name}_left")
        m.d.comb += left.eq(Mux(takes, self.there >> 1, self.there))
        m.d.sync += self.there.eq(Mux(put, left << 1 | 1, left))
        for n, held in enumerate(self.values):
            behind = self.values[n + 1] if n + 1 < depth else held
            first = ~left[n] & (left[n - 1] if n else 1)
            m.d.sync += held.eq(Mux(put & first, value, Mux(takes, behind, held)))

    @property
    def many(self):
        """How many there are."""
        return count(self.there)

    @property
    def full(self):
        return self.there[-1]

    def from_(self, skipped):
        """The values behind so many: of the same widths, one behind the other."""
        return Cat(self.values) >> (skipped * len(self.values[0]))
