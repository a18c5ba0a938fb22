"""The rules of a Wishbone B4 slave, classic and pipelined."""

from amaranth.hdl import Const, Module, Mux, Signal

from verif.formal.rules import Rules

__all__ = ["ClassicRules", "PipelinedRules"]

PINS = {
    "cyc_i": 1, "stb_i": 1, "we_i": 1, "adr_i": 10, "sel_i": 4, "dat_i": 32,
    "dat_o": 32, "ack_o": 1, "err_o": 1,
}
MAX_PENDING = 32  # more accesses than a slave ever has pending


class _WishboneRules(Rules):
    """The rules that classic and pipelined cycles share.

    Parameters
    ----------
    limit : int
        Cycles that an access may wait.
    """

    COVERS = {
        "write": "a write is acknowledged", "write_error": "a write is answered by an error",
        "read": "a read is acknowledged", "read_error": "a read is answered by an error",
        "aborted": "the master ends a cycle before it is answered",
        "next": "after that an access is acknowledged",
    }

    def __init__(self, *, limit):
        self.limit = limit
        super().__init__()

    @property
    def answer(self):
        return self.ack_o | self.err_o

    def _covers(self, m, write, aborted):
        """``write``: the answered access is a write; ``aborted``: the master ends a cycle early."""
        any_aborted = Signal()
        m.d.sync += any_aborted.eq(any_aborted | aborted)
        self.covers(m, {
            "write": self.cyc_i & self.ack_o & write,
            "write_error": self.cyc_i & self.err_o & write,
            "read": self.cyc_i & self.ack_o & ~write,
            "read_error": self.cyc_i & self.err_o & ~write,
            "aborted": aborted, "next": any_aborted & self.cyc_i & self.ack_o,
        })

    def _assume_master(self, m, stalled):
        """The master keeps a stalled access stable; it may end the cycle early."""
        same = Const(1)
        for value in (self.we_i, self.adr_i, self.sel_i, self.dat_i):
            same &= self.past(m, value) == value
        self.assume(m, ~(stalled & self.cyc_i) | (self.stb_i & same))


class ClassicRules(_WishboneRules):
    """The slave's side of classic cycles: a strobe stays high until it is answered.

    Source: OpenCores, Wishbone B4: 3.1.3, 3.2, 3.5; rules 3.35, 3.45, 3.50, 3.60.
    """

    PINS = PINS
    RULES = {
        "asked": "ACK or ERR is high once for a strobe, at the latest as the master aborts it",
        "one_kind": "ACK and ERR are never high together",
        "after_reset": "ACK and ERR are low in the cycle after a reset",
        "bounded": "a strobe is answered in bounded time",
        "once": "a new strobe is not answered by the answer of the one before",
    }

    def elaborate(self, platform):
        m = Module()
        strobe = self.cyc_i & self.stb_i
        stall = strobe & ~self.answer
        stalled = self.past(m, stall, "stalled")
        self._assume_master(m, stalled)
        self.check(m, "asked", ~self.answer | strobe | stalled)
        self.check(m, "one_kind", ~(self.ack_o & self.err_o))
        self.check(m, "after_reset", ~(self.after_reset(m) & self.answer))
        self.check_bound(m, "bounded", stall, self.limit)
        # An access takes a cycle at least: no answer in the cycle in which a strobe begins.
        first = strobe & ~stalled
        self.check(m, "once", ~(first & self.answer))
        self._covers(m, self.we_i, stalled & ~self.cyc_i)
        return m


class PipelinedRules(_WishboneRules):
    """The slave's side of pipelined cycles: a strobe that is not stalled is an access.

    Source: OpenCores, Wishbone B4: 3.1.3.2, 3.2.1.2, 5.2.1.
    """

    PINS = PINS | {"stall_o": 1}
    RULES = {
        "asked": "ACK or ERR is high once for an access, at the latest as the master aborts it",
        "one_kind": "ACK and ERR are never high together",
        "after_reset": "ACK and ERR are low in the cycle after a reset",
        "few": f"fewer than {MAX_PENDING} accesses are pending",
        "stall_bounded": "a strobe is stalled for bounded time",
        "bounded": "an access is answered in bounded time",
    }
    COVERS = _WishboneRules.COVERS | {
        "stalled": "a strobe is stalled",
        "back_to_back": "two answers come in two cycles",
    }

    def elaborate(self, platform):
        m = Module()
        strobe = self.cyc_i & self.stb_i
        stall, fire = strobe & self.stall_o, strobe & ~self.stall_o
        self._assume_master(m, self.past(m, stall, "stalled"))
        pending, writes = Signal(range(MAX_PENDING)), Signal(MAX_PENDING)
        done = self.cyc_i & self.answer
        m.d.sync += pending.eq(Mux(self.cyc_i, pending + fire - done, 0))
        with m.If(fire):
            m.d.sync += writes.eq(writes << 1 | self.we_i)
        self.check(m, "asked", ~self.answer | pending.any())
        self.check(m, "one_kind", ~(self.ack_o & self.err_o))
        self.check(m, "after_reset", ~(self.after_reset(m) & self.answer))
        self.check(m, "few", ~(fire & (pending == MAX_PENDING - 1)))
        self.check_bound(m, "stall_bounded", stall, self.limit)
        unanswered = self.cyc_i & pending.any() & ~self.answer
        self.check_bound(m, "bounded", unanswered, self.limit)
        oldest_is_write = (writes << 1).bit_select(pending, 1)
        self._covers(m, oldest_is_write, pending.any() & ~self.cyc_i)
        self.covers(m, {
            "stalled": stall, "back_to_back": done & self.past(m, done),
        })
        return m
