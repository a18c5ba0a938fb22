"""The rules of a Wishbone B4 slave, classic and pipelined, and what its master keeps."""

from amaranth.hdl import Const, Module, Mux, Signal

from weft.sim.formal.rules import Rules

__all__ = ["ClassicRules", "PipelinedRules"]

PINS = {
    "cyc_i": 1, "stb_i": 1, "we_i": 1, "adr_i": 10, "sel_i": 4, "dat_i": 32,
    "dat_o": 32, "ack_o": 1, "err_o": 1,
}
DEEP = 32  # more accesses than are ever under way


class _WishboneRules(Rules):
    """What both kinds of cycles have."""

    COVERS = {
        "write": "a write is acknowledged", "write_refused": "a write is answered by an error",
        "read": "a read is acknowledged", "read_refused": "a read is answered by an error",
        "dropped": "the master ends a cycle before it is answered",
        "next": "after that an access is acknowledged",
    }

    def __init__(self, *, patience):
        self.patience = patience
        super().__init__()

    @property
    def answer(self):
        return self.ack_o | self.err_o

    def _covers(self, m, write, dropped):
        """``write``: whether the access that is answered is one; ``dropped``: a cycle is."""
        after = Signal()
        m.d.sync += after.eq(after | dropped)
        for cover, seen in {
            "write": self.cyc_i & self.ack_o & write,
            "write_refused": self.cyc_i & self.err_o & write,
            "read": self.cyc_i & self.ack_o & ~write,
            "read_refused": self.cyc_i & self.err_o & ~write,
            "dropped": dropped, "next": after & self.cyc_i & self.ack_o,
        }.items():
            self.happens(m, cover, seen)


class ClassicRules(_WishboneRules):
    """A slave's side of classic cycles: a strobe stays until it is answered.

    Source: OpenCores, Wishbone B4: 3.1.3, 3.2, 3.5; rules 3.35, 3.45, 3.50, 3.60.
    """

    PINS = PINS
    RULES = {
        "asked": "ACK or ERR is high only for a strobe, or as it is given up, and only once",
        "one_kind": "ACK and ERR are never high together",
        "after_reset": "ACK and ERR are low in the cycle after one of reset",
        "bounded": "a strobe is answered in bounded time",
        "once": "a strobe that begins anew is not answered by what answered the one before",
    }

    def elaborate(self, platform):
        m = Module()
        strobe = self.cyc_i & self.stb_i
        waits = strobe & ~self.answer
        # A master may end a cycle before its answer, but not change what it asks within one.
        waited = self.past(m, waits, "waited")
        same = Const(1)
        for value in (self.we_i, self.adr_i, self.sel_i, self.dat_i):
            same &= self.past(m, value) == value
        self.promised(m, ~(waited & self.cyc_i) | (self.stb_i & same))
        self.must(m, "asked", ~self.answer | strobe | waited)
        self.must(m, "one_kind", ~(self.ack_o & self.err_o))
        self.must(m, "after_reset", ~(self.fresh(m) & self.answer))
        self.bounded(m, "bounded", waits, self.patience)
        # An access takes a cycle at least: no answer in the cycle in which a strobe begins.
        began = strobe & ~waited
        self.must(m, "once", ~(began & self.answer))
        self._covers(m, self.we_i, waited & ~self.cyc_i)
        return m


class PipelinedRules(_WishboneRules):
    """A slave's side of pipelined cycles: a strobe that is not stalled is an access.

    Source: OpenCores, Wishbone B4: 3.1.3.2, 3.2.1.2, 5.2.1.
    """

    PINS = PINS | {"stall_o": 1}
    RULES = {
        "asked": "ACK or ERR is high only for an access, or as it is given up, and only once",
        "one_kind": "ACK and ERR are never high together",
        "after_reset": "ACK and ERR are low in the cycle after one of reset",
        "few": f"fewer than {DEEP} accesses are under way",
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
        waits, took = strobe & self.stall_o, strobe & ~self.stall_o
        waited = self.past(m, waits, "waited")
        same = Const(1)
        for value in (self.we_i, self.adr_i, self.sel_i, self.dat_i):
            same &= self.past(m, value) == value
        self.promised(m, ~(waited & self.cyc_i) | (self.stb_i & same))
        owed, write = Signal(range(DEEP)), Signal(DEEP)
        done = self.cyc_i & self.answer
        m.d.sync += owed.eq(Mux(self.cyc_i, owed + took - done, 0))
        with m.If(took):
            m.d.sync += write.eq(write << 1 | self.we_i)
        self.must(m, "asked", ~self.answer | owed.any())
        self.must(m, "one_kind", ~(self.ack_o & self.err_o))
        self.must(m, "after_reset", ~(self.fresh(m) & self.answer))
        self.must(m, "few", ~(took & (owed == DEEP - 1)))
        self.bounded(m, "stall_bounded", waits, self.patience)
        unanswered = self.cyc_i & owed.any() & ~self.answer
        self.bounded(m, "bounded", unanswered, self.patience)
        oldest = (write << 1).bit_select(owed, 1)
        self._covers(m, oldest, owed.any() & ~self.cyc_i)
        for cover, seen in {
            "stalled": waits, "back_to_back": done & self.past(m, done),
        }.items():
            self.happens(m, cover, seen)
        return m
