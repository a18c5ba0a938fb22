"""The rules of an AXI4 master that reads and writes whole beats, and what its slave keeps."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.utils import ceil_log2

from weft.sim.formal.row import Row
from weft.sim.formal.rules import Rules

__all__ = ["ReadRules", "WriteRules"]

INCR = 0b01
PAGE = 4096  # bytes, which no burst crosses the end of
ADDRESS = {
    "addr": 32, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3, "qos": 4,
}


def address_pins(channel):
    return {
        **{f"{channel}{name}": width for name, width in ADDRESS.items()},
        f"{channel}valid": 1, f"{channel}ready": 1,
    }


class _AxiRules(Rules):
    """What both kinds have: bursts of ``beats`` beats of ``data_bytes`` bytes at most."""

    def _burst(self, m, channel, fresh):
        """The rules of a channel of addresses."""
        part = {one: getattr(self, f"{channel}{one}") for one in ADDRESS}
        valid, ready = (getattr(self, f"{channel}{name}") for name in ("valid", "ready"))
        self.check(m, f"{channel}_stays", self.stable(m, valid, ready, *part.values()))
        self.check(m, f"{channel}_after_reset", ~(fresh & valid))
        kind = (
            (part["burst"] == INCR) & (part["size"] == self.size) & ~part["lock"]
            & (part["len"] < self.beats) & ~part["addr"][:self.size].any()
        )
        self.check(m, f"{channel}_kind", ~valid | kind)
        end = part["addr"][:ceil_log2(PAGE)] + ((part["len"] + 1) << self.size)
        self.check(m, f"{channel}_page", ~valid | (end <= PAGE))
        self.cover(m, f"{channel}_waits", valid & ~ready)
        self.cover(m, f"{channel}_burst", valid & ready & part["len"].any())


class ReadRules(_AxiRules):
    """A master's side of reads. What the slave answers may be anything at all.

    Parameters
    ----------
    data_bytes, beats : int

    Source: ARM IHI 0022, AMBA AXI Protocol Specification: A3.1 to A3.4.
    """

    PINS = {
        **address_pins("ar"),
        "rvalid": 1, "rready": 1, "rresp": 2, "rlast": 1,
    }
    RULES = {
        "ar_stays": "ARVALID, once high, stays so with the same address and length until ARREADY",
        "ar_after_reset": "ARVALID is low in the cycle after one of reset",
        "ar_kind": "a burst of reads is INCR, of whole beats, aligned, not too long",
        "ar_page": "no burst of reads crosses 4 KiB",
        "r_taken": "RREADY is high: no beat ever waits",
    }
    COVERS = {
        "ar_waits": "an address of a read waits", "ar_burst": "one of several beats is asked for",
        "read": "a beat is taken",
    }

    def __init__(self, *, data_bytes, beats):
        self.size = ceil_log2(data_bytes)
        self.beats = beats
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        self._burst(m, "ar", self.after_reset(m))
        self.check(m, "r_taken", self.rready)
        self.cover(m, "read", self.rvalid & self.rready)
        return m


class WriteRules(_AxiRules):
    """A master's side of writes, with one ID. Its slave answers bursts that were given whole.

    Data may come before their address, as they may in AXI4.

    Parameters
    ----------
    data_bytes, beats : int
    deep : int
        More bursts than are ever under way.
    limit : int
        Cycles that an answer may wait.

    Source: ARM IHI 0022, AMBA AXI Protocol Specification: A3.1 to A3.4, A5.
    """

    PINS = {
        **address_pins("aw"),
        **{f"{channel}{name}": 1 for channel in "wb" for name in ("valid", "ready")},
        "wdata": 128, "wstrb": 16, "wlast": 1, "bresp": 2,
    }
    RULES = {
        "aw_stays": "AWVALID, once high, stays so with the same address and length until AWREADY",
        "aw_after_reset": "AWVALID is low in the cycle after one of reset",
        "aw_kind": "a burst of writes is INCR, of whole beats, aligned, not too long",
        "aw_page": "no burst of writes crosses 4 KiB",
        "w_stays": "WVALID, once high, stays so with the same data, strobes and last until WREADY",
        "w_after_reset": "WVALID is low in the cycle after one of reset",
        "w_last": "a burst has as many beats as its address says: WLAST is high with the last one",
        "w_few": "no more bursts of writes are under way than the master has room for",
        "b_bounded": "BREADY is high in bounded time",
    }
    COVERS = {
        "aw_waits": "an address of a write waits", "aw_burst": "one of several beats is given",
        "w_waits": "data of a write wait",
        "w_first": "all data of a burst are given before its address",
        "write": "a burst is answered", "write_error": "a burst is answered by an error",
        "writes": "two bursts are under way",
    }

    def __init__(self, *, data_bytes, beats, deep, limit, **widths):
        self.size = ceil_log2(data_bytes)
        self.beats = beats
        self.deep = deep
        self.limit = limit
        super().__init__(wdata=8 * data_bytes, wstrb=data_bytes, **widths)

    def elaborate(self, platform):
        m = Module()
        fresh = self.after_reset(m)
        self._burst(m, "aw", fresh)
        self.check(m, "w_stays", self.stable(
            m, self.wvalid, self.wready, self.wdata, self.wstrb, self.wlast,
        ))
        self.check(m, "w_after_reset", ~(fresh & self.wvalid))
        asks, gives = self.awvalid & self.awready, self.wvalid & self.wready
        ends, done = gives & self.wlast, self.bvalid & self.bready
        # Of bursts that are not answered: beats less one, as their addresses say, as data came.
        beats = Signal(9)  # of the burst whose data are under way, so far
        with m.If(gives):
            m.d.sync += beats.eq(Mux(self.wlast, 0, beats + ~beats[8]))
        self.asked = asked = Row(m, "asked", self.deep, put=asks, value=self.awlen, takes=done)
        self.whole = whole = Row(m, "whole", self.deep, put=ends, value=beats, takes=done)
        self.check(m, "w_few", ~(ends & whole.full) & ~(asks & asked.full))
        right = Const(1)
        for n, (length, came) in enumerate(zip(asked.values, whole.values, strict=True)):
            comes = ~whole.there[n] & (whole.there[n - 1] if n else 1)
            right &= ~asked.there[n] | Mux(
                whole.there[n], came == length, ~comes | (beats <= length)
            )
        self.check(m, "w_last", right)
        self.beats_given = beats
        self.assume(m, self.stable(m, self.bvalid, self.bready, self.bresp))
        self.assume(m, ~self.bvalid | (whole.there[0] & asked.there[0]))
        self.check_bound(m, "b_bounded", self.bvalid & ~self.bready, self.limit)
        self.cover(m, "w_waits", self.wvalid & ~self.wready)
        self.cover(m, "w_first", ends & ~asked.there[0] & ~asks)
        self.cover(m, "write", done)
        self.cover(m, "write_error", done & self.bresp[1])
        self.cover(m, "writes", whole.there[1])
        return m
