"""The rules of an AXI4 master that reads and writes whole beats, and what its slave keeps."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.utils import ceil_log2

from weft.sim.formal.rules import Rules

__all__ = ["AxiRules"]

INCR = 0b01
PAGE = 4096  # bytes, which no burst crosses the end of
DEEP = 256  # more bursts, of either kind, than are ever under way
ADDRESS = {
    "addr": 32, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3, "qos": 4,
}


class AxiRules(Rules):
    """A master's side of AXI4, with one ID, of bursts of ``beats`` beats at most.

    Its slave answers bursts of one kind in their order, as it must where there is one ID. What the
    slave says with RLAST fits the beats that it owes in all, not burst by burst: it may do more
    than a slave ever does.

    Source: ARM IHI 0022, AMBA AXI Protocol Specification: A3.1 to A3.4, A5.
    """

    PINS = {
        **{f"{c}{name}": width for c in ("aw", "ar") for name, width in ADDRESS.items()},
        **{f"{c}{name}": 1 for c in ("aw", "w", "b", "ar", "r") for name in ("valid", "ready")},
        "wdata": 128, "wstrb": 16, "wlast": 1, "bresp": 2, "rdata": 128, "rresp": 2, "rlast": 1,
    }
    FREE = {"pick": 1}
    RULES = {
        "aw_stays": "AWVALID, once high, stays so with the same address and length until AWREADY",
        "w_stays": "WVALID, once high, stays so with the same data, strobes and last until WREADY",
        "ar_stays": "ARVALID, once high, stays so with the same address and length until ARREADY",
        "aw_after_reset": "AWVALID is low in the cycle after one of reset",
        "w_after_reset": "WVALID is low in the cycle after one of reset",
        "ar_after_reset": "ARVALID is low in the cycle after one of reset",
        "aw_kind": "a burst of writes is INCR, of whole beats, aligned, not too long",
        "ar_kind": "a burst of reads is INCR, of whole beats, aligned, not too long",
        "aw_page": "no burst of writes crosses 4 KiB",
        "ar_page": "no burst of reads crosses 4 KiB",
        "w_after_aw": "data of a burst are offered with its address or later",
        "w_last": "WLAST is high with the last beat of each burst, and with no other",
        "w_few": "fewer bursts of writes than rules count are under way",
        "r_few": "fewer bursts of reads than rules count are under way",
        "r_taken": "RREADY is high while there are beats to come",
        "b_bounded": "BREADY is high in bounded time",
    }
    COVERS = {
        "write": "a burst of writes is answered", "write_burst": "one of several beats ends",
        "write_error": "a burst of writes is answered by an error",
        "read": "the last beat of a read comes", "read_burst": "one of several beats is asked for",
        "read_error": "a beat comes with an error",
        "writes": "two bursts of writes are under way", "reads": "two bursts of reads are",
        "aw_waits": "an address of a write waits", "w_waits": "data of a write wait",
        "ar_waits": "an address of a read waits",
    }

    def __init__(self, *, data_bytes, beats, patience):
        self.size = ceil_log2(data_bytes)
        self.beats = beats
        self.patience = patience
        super().__init__(wdata=8 * data_bytes, wstrb=data_bytes, rdata=8 * data_bytes)

    def elaborate(self, platform):
        m = Module()
        fresh = self.fresh(m)
        for name, payload in (
            ("aw", [getattr(self, f"aw{part}") for part in ADDRESS]),
            ("w", [self.wdata, self.wstrb, self.wlast]),
            ("ar", [getattr(self, f"ar{part}") for part in ADDRESS]),
        ):
            valid = getattr(self, f"{name}valid")
            stays = self.stays(m, valid, getattr(self, f"{name}ready"), *payload)
            self.must(m, f"{name}_stays", stays)
            self.must(m, f"{name}_after_reset", ~(fresh & valid))
        for name in ("aw", "ar"):
            self._burst(m, name)
        self._reads(m)
        self._writes(m)
        for name in ("aw", "w", "ar"):
            waits = getattr(self, f"{name}valid") & ~getattr(self, f"{name}ready")
            self.happens(m, f"{name}_waits", waits)
        return m

    def _burst(self, m, name):
        part = {one: getattr(self, f"{name}{one}") for one in ADDRESS}
        valid, start = getattr(self, f"{name}valid"), part["addr"][:ceil_log2(PAGE)]
        kind = (
            (part["burst"] == INCR) & (part["size"] == self.size) & ~part["lock"]
            & (part["len"] < self.beats) & ~part["addr"][:self.size].any()
        )
        self.must(m, f"{name}_kind", ~valid | kind)
        end = start + ((part["len"] + 1) << self.size)
        self.must(m, f"{name}_page", ~valid | (end <= PAGE))

    def _reads(self, m):
        """Beats owed in all, and bursts that they end: a slave that keeps these keeps its word."""
        asks, comes = self.arvalid & self.arready, self.rvalid & self.rready
        beats, bursts = Signal(range(DEEP * self.beats)), Signal(range(DEEP))
        ends = comes & self.rlast
        m.d.sync += [
            beats.eq(beats + Mux(asks, self.arlen + 1, 0) - comes),
            bursts.eq(bursts + asks - ends),
        ]
        left, more = beats - 1, bursts - self.rlast
        self.promised(m, self.stays(
            m, self.rvalid, self.rready, self.rdata, self.rresp, self.rlast,
        ))
        self.promised(m, ~self.rvalid | (
            beats.any() & (left >= more) & (left.any() == more.any())
            & (left <= self.beats * more)
        ))
        self.must(m, "r_few", ~(asks & (bursts == DEEP - 1)))
        self.must(m, "r_taken", ~beats.any() | self.rready)
        self.happens(m, "read", ends)
        self.happens(m, "read_burst", asks & self.arlen.any())
        self.happens(m, "read_error", comes & self.rresp[1])
        self.happens(m, "reads", bursts > 1)

    def _writes(self, m):
        waited = self.past(m, self.awvalid & ~self.awready, "aw_waited")
        offers = self.awvalid & ~waited
        asks, gives = self.awvalid & self.awready, self.wvalid & self.wready
        ends, done = gives & self.wlast, self.bvalid & self.bready
        # Bursts offered and not given whole; whole and asked, not answered.
        open_, whole, asked = (Signal(range(DEEP), name=name) for name in ("open", "w", "aw"))
        m.d.sync += [
            open_.eq(open_ + offers - ends),
            whole.eq(whole + ends - done), asked.eq(asked + asks - done),
        ]
        self.must(m, "w_few", ~(offers & (open_ == DEEP - 1)) & ~(asks & (asked == DEEP - 1)))
        self.must(m, "w_after_aw", ~self.wvalid | open_.any() | offers)
        self.promised(m, self.stays(m, self.bvalid, self.bready, self.bresp))
        self.promised(m, ~self.bvalid | (whole.any() & asked.any()))
        self._last(m, offers, open_, gives, ends)
        self.bounded(m, "b_bounded", self.bvalid & ~self.bready, self.patience)
        self.happens(m, "write", done)
        self.happens(m, "write_burst", ends & self.past(m, gives & ~self.wlast))
        self.happens(m, "write_error", done & self.bresp[1])
        self.happens(m, "writes", open_ > 1)

    def _last(self, m, offers, open_, gives, ends):
        """WLAST of any one burst: that which is picked as it is offered."""
        picked, ahead, left = Signal(), Signal.like(open_), Signal(8)
        picks = offers & self.pick & ~picked
        before = Mux(picks, open_, ahead)  # bursts that are given before it
        beats = Mux(picks, self.awlen, left)
        at_it = (picked | picks) & (before == 0)
        with m.If(picks):
            m.d.sync += [picked.eq(1), left.eq(self.awlen)]
        with m.If(picked | picks):
            m.d.sync += ahead.eq(before - (ends & ~at_it))
        with m.If(at_it & gives):
            m.d.sync += left.eq(beats - 1)
            with m.If(self.wlast):
                m.d.sync += picked.eq(0)
        self.must(m, "w_last", ~(at_it & self.wvalid) | (self.wlast == (beats == 0)))
