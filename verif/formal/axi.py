"""Rules of an AXI4 master that reads and writes whole beats, and assumptions about its slave."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.utils import ceil_log2

from verif.formal.row import Row
from verif.formal.rules import Rules

__all__ = ["ReadRules", "WriteRules"]

INCR = 0b01
PAGE = 4096  # bytes; no burst crosses a multiple of it
ADDRESS = {
    "addr": 32, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3, "qos": 4,
}


def address_pins(channel):
    """Widths of the pins of an address channel, by name."""
    return {
        **{f"{channel}{name}": width for name, width in ADDRESS.items()},
        f"{channel}valid": 1, f"{channel}ready": 1,
    }


class _AxiRules(Rules):
    """Rules of an address channel: bursts of at most ``beats`` beats of ``data_bytes`` bytes."""

    def __init__(self, *, data_bytes, beats, **widths):
        self.size = ceil_log2(data_bytes)
        self.beats = beats
        super().__init__(**widths)

    def _burst(self, m, channel, after_reset):
        """Add the rules of the address channel ``channel``."""
        fields = {name: getattr(self, f"{channel}{name}") for name in ADDRESS}
        valid, ready = (getattr(self, f"{channel}{name}") for name in ("valid", "ready"))
        self.check_channel(m, channel, after_reset, *fields.values())
        kind = (
            (fields["burst"] == INCR) & (fields["size"] == self.size) & ~fields["lock"]
            & (fields["len"] < self.beats) & ~fields["addr"][:self.size].any()
        )
        self.check(m, f"{channel}_kind", ~valid | kind)
        end = fields["addr"][:ceil_log2(PAGE)] + ((fields["len"] + 1) << self.size)
        self.check(m, f"{channel}_page", ~valid | (end <= PAGE))
        self.cover(m, f"{channel}_waits", valid & ~ready)
        self.cover(m, f"{channel}_burst", valid & ready & fields["len"].any())


class ReadRules(_AxiRules):
    """The master's side of reads. The slave may respond with anything.

    Parameters
    ----------
    data_bytes : int
        Bytes of a beat.
    beats : int
        Beats of the longest burst.

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
        "r_ready": "RREADY is always high: no beat waits",
    }
    COVERS = {
        "ar_waits": "an address of a read waits",
        "ar_burst": "a burst of several beats is requested",
        "read": "a beat is taken",
    }

    def elaborate(self, platform):
        m = Module()
        self._burst(m, "ar", self.after_reset(m))
        self.check(m, "r_ready", self.rready)
        self.cover(m, "read", self.rvalid & self.rready)
        return m


class WriteRules(_AxiRules):
    """The master's side of writes, with one ID. The slave responds to complete bursts only.

    Data may come before their address, as AXI4 allows.

    Parameters
    ----------
    data_bytes : int
        Bytes of a beat.
    beats : int
        Beats of the longest burst.
    max_bursts : int
        Bursts without a response, at most.
    limit : int
        Cycles for which a response may wait.
    widths : int
        As of `Rules`.

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
        "w_limit": "no more bursts of writes are in flight than the master has space for",
        "b_bounded": "BREADY is high in bounded time",
    }
    COVERS = {
        "aw_waits": "an address of a write waits",
        "aw_burst": "an address of several beats is taken",
        "w_waits": "data of a write wait",
        "w_first": "all data of a burst are taken before its address",
        "write": "a burst gets its response", "write_error": "a burst gets an error response",
        "writes": "two bursts are in flight",
    }

    def __init__(self, *, data_bytes, beats, max_bursts, limit, **widths):
        self.max_bursts = max_bursts
        self.limit = limit
        super().__init__(
            data_bytes=data_bytes, beats=beats, wdata=8 * data_bytes, wstrb=data_bytes, **widths
        )

    def elaborate(self, platform):
        m = Module()
        self._write_rules(m)
        return m

    def _write_rules(self, m):
        """Add all rules; returns the model of the bursts in flight, for further rules.

        These are two rows, the lengths that addresses have given and the lengths of complete
        data, and the number of beats so far of the burst whose data are on W.
        """
        after_reset = self.after_reset(m)
        self._burst(m, "aw", after_reset)
        self.check_channel(m, "w", after_reset, self.wdata, self.wstrb, self.wlast)
        aw_fire, w_fire = self.awvalid & self.awready, self.wvalid & self.wready
        w_end, b_fire = w_fire & self.wlast, self.bvalid & self.bready
        w_beats = Signal(9)
        with m.If(w_fire):
            m.d.sync += w_beats.eq(Mux(self.wlast, 0, w_beats + ~w_beats[8]))
        addressed = Row(
            m, "addressed", self.max_bursts, put=aw_fire, value=self.awlen, take=b_fire
        )
        complete = Row(m, "complete", self.max_bursts, put=w_end, value=w_beats, take=b_fire)
        self.check(m, "w_limit", ~(w_end & complete.full) & ~(aw_fire & addressed.full))
        matches = Const(1)
        for n, (length, beats) in enumerate(zip(addressed.values, complete.values, strict=True)):
            on_w = ~complete.valid[n] & (complete.valid[n - 1] if n else 1)
            matches &= ~addressed.valid[n] | Mux(
                complete.valid[n], beats == length, ~on_w | (w_beats <= length)
            )
        self.check(m, "w_last", matches)
        self.assume(m, self.stable(m, self.bvalid, self.bready, self.bresp))
        self.assume(m, ~self.bvalid | (complete.valid[0] & addressed.valid[0]))
        self.check_bound(m, "b_bounded", self.bvalid & ~self.bready, self.limit)
        self.cover(m, "w_waits", self.wvalid & ~self.wready)
        self.cover(m, "w_first", w_end & ~addressed.valid[0] & ~aw_fire)
        self.cover(m, "write", b_fire)
        self.cover(m, "write_error", b_fire & self.bresp[1])
        self.cover(m, "writes", complete.valid[1] if self.max_bursts > 1 else Const(0))
        return addressed, complete, w_beats
