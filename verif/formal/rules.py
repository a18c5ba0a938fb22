"""The base class of formal rules: checks, covers and assumptions on the pins of an interface."""

from amaranth.hdl import Assume, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Rules"]


class Rules(wiring.Component):
    """Watches one interface.

    A subclass defines four dicts. PINS has the width of each watched pin; FREE has the width of
    each input that may have any value. RULES has a sentence for each rule that must always hold.
    COVERS has a sentence for each event that must be reachable, so that no rule holds only because
    nothing happens.

    Parameters
    ----------
    widths : int
        Widths of pins, by name, that differ from those in PINS.

    Attributes
    ----------
    pins of PINS and FREE : In
    violated : Out, one bit for each of RULES
        The rule is violated in this cycle.
    covered : Out, one bit for each of COVERS
        The event happens in this cycle.
    """

    PINS = {}
    FREE = {}
    RULES = {}
    COVERS = {}

    def __init__(self, **widths):
        super().__init__({
            **{name: In(width) for name, width in (self.PINS | self.FREE | widths).items()},
            "violated": Out(data.StructLayout(dict.fromkeys(self.RULES, 1))),
            "covered": Out(data.StructLayout(dict.fromkeys(self.COVERS, 1))),
        })

    def check(self, m, rule, holds):
        """Rule ``rule`` is violated in each cycle in which ``holds`` is 0."""
        m.d.comb += self.violated[rule].eq(~holds)

    def cover(self, m, name, event):
        """Cover ``name`` happens in each cycle in which ``event`` is 1."""
        m.d.comb += self.covered[name].eq(event)

    def covers(self, m, events):
        """Each cover of the dict ``events`` happens in each cycle in which its event is 1."""
        for name, event in events.items():
            self.cover(m, name, event)

    @staticmethod
    def assume(m, holds):
        """``holds`` is 1 in every cycle: the environment of the design guarantees it."""
        m.d.comb += Assume(holds)

    @staticmethod
    def past(m, value, name=None):
        """``value`` in the cycle before; 0 after a reset and in the first cycle."""
        past = Signal.like(value, init=0, name=name or "past")
        m.d.sync += past.eq(value)
        return past

    @staticmethod
    def after_reset(m):
        """Whether this is the first cycle, or the first one after a reset."""
        after_reset = Signal(init=1, name="after_reset")
        m.d.sync += after_reset.eq(0)
        return after_reset

    def check_bound(self, m, rule, wait, limit):
        """Rule ``rule`` is violated if ``wait`` is 1 for more than ``limit`` cycles in a row."""
        waited = Signal(range(limit + 2), name=f"{rule}_waited")
        over = waited == limit + 1
        m.d.sync += waited.eq(Mux(wait, Mux(over, waited, waited + 1), 0))
        self.check(m, rule, ~over)

    def check_channel(self, m, channel, after_reset, *payload):
        """The rules ``CHANNEL_stays`` and ``CHANNEL_after_reset`` of what a channel offers."""
        valid, ready = (getattr(self, f"{channel}{name}") for name in ("valid", "ready"))
        self.check(m, f"{channel}_stays", self.stable(m, valid, ready, *payload))
        self.check(m, f"{channel}_after_reset", ~(after_reset & valid))

    def stable(self, m, valid, ready, *payload):
        """Whether a word that was offered and not taken is still offered, and did not change."""
        stalled = self.past(m, valid & ~ready, "stalled")
        holds = valid
        for value in payload:
            holds = holds & (self.past(m, value) == value)
        return ~stalled | holds
