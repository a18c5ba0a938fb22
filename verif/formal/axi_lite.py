"""The rules of an AXI4-Lite slave."""

from amaranth.hdl import Const, Module, Signal

from verif.formal.rules import Rules

__all__ = ["AxiLiteBounds", "AxiLiteRules"]

OKAY, SLVERR = 0b00, 0b10
MAX_PENDING = 8  # more accesses than a slave ever has pending


def assume_master(rules, m):
    """The master keeps its payload stable until the slave takes it."""
    for channel, payload in {
        "aw": ("addr", "prot"), "w": ("data", "strb"), "ar": ("addr", "prot"),
    }.items():
        pins = [getattr(rules, channel + name) for name in ("valid", "ready", *payload)]
        rules.assume(m, rules.stable(m, *pins))


class AxiLiteRules(Rules):
    """The slave's side of AXI4-Lite.

    Source: ARM IHI 0022, AMBA AXI Protocol Specification: A3.1 to A3.4, B1.1.
    """

    PINS = {
        "awaddr": 12, "awprot": 3, "awvalid": 1, "awready": 1,
        "wdata": 32, "wstrb": 4, "wvalid": 1, "wready": 1,
        "bresp": 2, "bvalid": 1, "bready": 1,
        "araddr": 12, "arprot": 3, "arvalid": 1, "arready": 1,
        "rdata": 32, "rresp": 2, "rvalid": 1, "rready": 1,
    }
    RULES = {
        "b_after_aw_and_w": "BVALID is high once for each write, after its AW and W were taken",
        "r_after_ar": "RVALID is high once for each read, after its address was taken",
        "b_stays": "BVALID, once high, stays high with the same BRESP until BREADY",
        "r_stays": "RVALID, once high, stays high with the same RDATA and RRESP until RREADY",
        "few": f"fewer than {MAX_PENDING} accesses of a kind are pending",
        "b_after_reset": "BVALID is low in the cycle after a reset",
        "r_after_reset": "RVALID is low in the cycle after a reset",
        "bresp_known": "BRESP is OKAY or SLVERR",
        "rresp_known": "RRESP is OKAY or SLVERR",
    }
    COVERS = {
        "write": "a write is answered OKAY", "write_error": "a write is answered SLVERR",
        "read": "a read is answered OKAY", "read_error": "a read is answered SLVERR",
        "both": "a write and a read are answered in one cycle",
        "b_stalls": "an answer to a write waits for BREADY",
        "r_stalls": "an answer to a read waits for RREADY",
    }

    def elaborate(self, platform):
        m = Module()
        assume_master(self, m)
        fire = {
            name: getattr(self, f"{name}valid") & getattr(self, f"{name}ready")
            for name in ("aw", "w", "b", "ar", "r")
        }
        pending, few = {}, Const(1)
        for name, answer in (("aw", "b"), ("w", "b"), ("ar", "r")):
            pending[name] = count = Signal(range(MAX_PENDING), name=f"pending_{name}")
            m.d.sync += count.eq(count + fire[name] - fire[answer])
            few = few & ~(fire[name] & (count == MAX_PENDING - 1))
        self.check(m, "few", few)
        after_reset = self.after_reset(m)
        self.check(m, "b_after_aw_and_w",
                   ~self.bvalid | (pending["aw"].any() & pending["w"].any()))
        self.check(m, "r_after_ar", ~self.rvalid | pending["ar"].any())
        self.check_channel(m, "b", after_reset, self.bresp)
        self.check_channel(m, "r", after_reset, self.rdata, self.rresp)
        for name in "br":
            valid, resp = getattr(self, f"{name}valid"), getattr(self, f"{name}resp")
            self.check(m, f"{name}resp_known", ~valid | (resp == OKAY) | (resp == SLVERR))
        b, r = fire["b"], fire["r"]
        self.covers(m, {
            "write": b & (self.bresp == OKAY), "write_error": b & (self.bresp == SLVERR),
            "read": r & (self.rresp == OKAY), "read_error": r & (self.rresp == SLVERR),
            "both": b & r, "b_stalls": self.bvalid & ~self.bready,
            "r_stalls": self.rvalid & ~self.rready,
        })
        return m


class AxiLiteBounds(Rules):
    """The slave serves a master that takes every answer at once in bounded time.

    Parameters
    ----------
    limit : int
        Cycles that a channel may wait.
    """

    PINS = AxiLiteRules.PINS
    RULES = {
        "aw_bounded": "the address of a write is taken in bounded time",
        "w_bounded": "the data of a write are taken in bounded time",
        "b_bounded": "a write is answered in bounded time",
        "ar_bounded": "the address of a read is taken in bounded time",
        "r_bounded": "a read is answered in bounded time",
    }

    def __init__(self, *, limit):
        self.limit = limit
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        assume_master(self, m)
        self.assume(m, self.bready & self.rready)
        pending = {
            name: Signal(range(MAX_PENDING), name=f"pending_{name}") for name in ("aw", "w", "ar")
        }
        for name, count in pending.items():
            answer = self.rvalid if name == "ar" else self.bvalid
            fire = getattr(self, f"{name}valid") & getattr(self, f"{name}ready")
            m.d.sync += count.eq(count + fire - answer)
        # A slave may wait for both parts of a write before it takes either.
        aw, w = (getattr(self, f"{name}valid") | pending[name].any() for name in ("aw", "w"))
        for name, wait in {
            "aw": self.awvalid & ~self.awready & w,
            "w": self.wvalid & ~self.wready & aw,
            "b": pending["aw"].any() & pending["w"].any() & ~self.bvalid,
            "ar": self.arvalid & ~self.arready,
            "r": pending["ar"].any() & ~self.rvalid,
        }.items():
            self.check_bound(m, f"{name}_bounded", wait, self.limit)
        return m
