"""A model of a FIFO whose entries rules can look at."""

from amaranth.hdl import Cat, Mux, Signal

__all__ = ["Row", "count"]


def count(bits):
    """Number of ones in ``bits``."""
    return sum(bits[n] for n in range(len(bits)))


class Row:
    """The entries that were put and not yet taken, the oldest first.

    It is exact as long as no entry is put while it is full, and none is taken while it is empty.

    Parameters
    ----------
    m : Module
    name : str
        Prefix of the names of its signals.
    depth : int
    put, take : Value
        1 bit each; an entry is put, the oldest is taken in this cycle.
    value : Value
        The entry that is put.

    Attributes
    ----------
    valid : Signal
        A bit for each place: an entry is in it.
    values : list of Signal
        The entries by their places.
    """

    def __init__(self, m, name, depth, *, put, value, take):
        self.valid = Signal(depth, name=f"{name}_valid")
        self.values = [Signal(len(value), name=f"{name}_{n}") for n in range(depth)]
        remaining = Signal.like(self.valid, name=f"{name}_remaining")
        m.d.comb += remaining.eq(Mux(take, self.valid >> 1, self.valid))
        m.d.sync += self.valid.eq(Mux(put, remaining << 1 | 1, remaining))
        for n, entry in enumerate(self.values):
            next_entry = self.values[n + 1] if n + 1 < depth else entry
            first_free = ~remaining[n] & (remaining[n - 1] if n else 1)
            m.d.sync += entry.eq(Mux(put & first_free, value, Mux(take, next_entry, entry)))

    @property
    def level(self):
        """Number of entries."""
        return count(self.valid)

    @property
    def full(self):
        return self.valid[-1]

    def skip(self, number):
        """All entries but the first ``number``, as one Value: the oldest in the low bits."""
        return Cat(self.values) >> (number * len(self.values[0]))
