"""What a proof is made of: rules that watch pins, and what keeps what its surroundings promise."""

from amaranth.hdl import Assume, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Rules"]


class Rules(wiring.Component):
    """A watcher of one interface.

    A class of them has PINS, widths by name; FREE, the same of inputs that may be anything; RULES,
    which must never be broken, and COVERS, which must be seen to happen, so that nothing is proven
    of what cannot occur: a sentence by name.

    Parameters
    ----------
    widths : int
        Of pins, by name, that are other than PINS has it.

    Attributes
    ----------
    `PINS`, `FREE` : In
    broken : Out
        A bit for each of RULES: it is broken in this cycle.
    seen : Out
        A bit for each of COVERS.
    """

    PINS = {}
    FREE = {}
    RULES = {}
    COVERS = {}

    def __init__(self, **widths):
        super().__init__({
            **{name: In(width) for name, width in (self.PINS | self.FREE | widths).items()},
            "broken": Out(data.StructLayout(dict.fromkeys(self.RULES, 1))),
            "seen": Out(data.StructLayout(dict.fromkeys(self.COVERS, 1))),
        })

    def must(self, m, rule, kept):
        """``rule`` is broken where not ``kept``."""
        m.d.comb += self.broken[rule].eq(~kept)

    def happens(self, m, cover, seen):
        """``cover`` happens where ``seen``."""
        m.d.comb += self.seen[cover].eq(seen)

    @staticmethod
    def promised(m, kept):
        """The surroundings never break this."""
        m.d.comb += Assume(kept)

    @staticmethod
    def past(m, value, name=None):
        """``value`` of the cycle before; 0 where that was of a reset, or there was none."""
        past = Signal.like(value, init=0, name=name or "past")
        m.d.sync += past.eq(value)
        return past

    @staticmethod
    def fresh(m):
        """Whether this cycle is the first, or the cycle before was of a reset."""
        fresh = Signal(init=1, name="fresh")
        m.d.sync += fresh.eq(0)
        return fresh

    def bounded(self, m, rule, waits, patience):
        """``rule`` is broken where ``waits`` more than ``patience`` cycles in a row."""
        waited = Signal(range(patience + 2), name=f"{rule}_waited")
        over = waited == patience + 1
        m.d.sync += waited.eq(Mux(waits, Mux(over, waited, waited + 1), 0))
        self.must(m, rule, ~over)

    def stays(self, m, valid, ready, *payload):
        """Whether what was offered and not taken is offered still, and the same."""
        offered = self.past(m, valid & ~ready, "offered")
        same = [self.past(m, value) == value for value in payload]
        kept = valid
        for one in same:
            kept = kept & one
        return ~offered | kept
