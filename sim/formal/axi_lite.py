"""The rules of an AXI4-Lite slave, and what its master keeps."""

from amaranth.hdl import Const, Module, Signal

from weft.sim.formal.rules import Rules

__all__ = ["AxiLiteBounds", "AxiLiteRules"]

OKAY, SLVERR = 0b00, 0b10
DEEP = 8  # more accesses than are ever under way


def keep_word(rules, m):
    """What a master keeps: what it offers stays."""
    for channel, payload in {
        "aw": ("addr", "prot"), "w": ("data", "strb"), "ar": ("addr", "prot"),
    }.items():
        pins = [getattr(rules, channel + name) for name in ("valid", "ready", *payload)]
        rules.promised(m, rules.stays(m, *pins))


class AxiLiteRules(Rules):
    """A slave's side of AXI4-Lite.

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
        "b_after_aw_and_w": "BVALID is high only for a write, once, whose AW and W were taken",
        "r_after_ar": "RVALID is high only for a read, once, whose address was taken",
        "b_stays": "BVALID, once high, stays so with the same BRESP until BREADY",
        "r_stays": "RVALID, once high, stays so with the same RDATA and RRESP until RREADY",
        "few": f"fewer than {DEEP} accesses of a kind are under way",
        "b_after_reset": "BVALID is low in the cycle after one of reset",
        "r_after_reset": "RVALID is low in the cycle after one of reset",
        "bresp_known": "BRESP is OKAY or SLVERR",
        "rresp_known": "RRESP is OKAY or SLVERR",
    }
    COVERS = {
        "write": "a write is answered OKAY", "write_refused": "a write is answered SLVERR",
        "read": "a read is answered OKAY", "read_refused": "a read is answered SLVERR",
        "both": "a write and a read are answered in one cycle",
        "b_waits": "an answer to a write waits for BREADY",
        "r_waits": "an answer to a read waits for RREADY",
    }

    def elaborate(self, platform):
        m = Module()
        keep_word(self, m)
        took = {
            name: getattr(self, f"{name}valid") & getattr(self, f"{name}ready")
            for name in ("aw", "w", "b", "ar", "r")
        }
        owed, few = {}, Const(1)
        for name, answer in (("aw", "b"), ("w", "b"), ("ar", "r")):
            owed[name] = count = Signal(range(DEEP), name=f"owed_{name}")
            m.d.sync += count.eq(count + took[name] - took[answer])
            few = few & ~(took[name] & (count == DEEP - 1))
        self.must(m, "few", few)
        fresh = self.fresh(m)
        self.must(m, "b_after_aw_and_w",
                  ~self.bvalid | (owed["aw"].any() & owed["w"].any()))
        self.must(m, "r_after_ar", ~self.rvalid | owed["ar"].any())
        self.must(m, "b_stays", self.stays(m, self.bvalid, self.bready, self.bresp))
        self.must(m, "r_stays",
                  self.stays(m, self.rvalid, self.rready, self.rdata, self.rresp))
        for name in "br":
            valid, resp = getattr(self, f"{name}valid"), getattr(self, f"{name}resp")
            self.must(m, f"{name}_after_reset", ~(fresh & valid))
            self.must(m, f"{name}resp_known", ~valid | (resp == OKAY) | (resp == SLVERR))
        b, r = took["b"], took["r"]
        for name, seen in {
            "write": b & (self.bresp == OKAY), "write_refused": b & (self.bresp == SLVERR),
            "read": r & (self.rresp == OKAY), "read_refused": r & (self.rresp == SLVERR),
            "both": b & r, "b_waits": self.bvalid & ~self.bready,
            "r_waits": self.rvalid & ~self.rready,
        }.items():
            self.happens(m, name, seen)
        return m


class AxiLiteBounds(Rules):
    """The times within which a slave serves a master that takes every answer as it comes.

    Parameters
    ----------
    patience : int
        Cycles that anything may wait.
    """

    PINS = AxiLiteRules.PINS
    RULES = {
        "aw_bounded": "an address of a write is taken in bounded time",
        "w_bounded": "data of a write are taken in bounded time",
        "b_bounded": "a write is answered in bounded time",
        "ar_bounded": "an address of a read is taken in bounded time",
        "r_bounded": "a read is answered in bounded time",
    }

    def __init__(self, *, patience):
        self.patience = patience
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        keep_word(self, m)
        self.promised(m, self.bready & self.rready)
        owed = {name: Signal(range(DEEP), name=f"owed_{name}") for name in ("aw", "w", "ar")}
        for name, count in owed.items():
            answered = self.rvalid if name == "ar" else self.bvalid
            took = getattr(self, f"{name}valid") & getattr(self, f"{name}ready")
            m.d.sync += count.eq(count + took - answered)
        # A slave may want both of a write before it takes either.
        aw, w = (getattr(self, f"{name}valid") | owed[name].any() for name in ("aw", "w"))
        for name, waits in {
            "aw": self.awvalid & ~self.awready & w,
            "w": self.wvalid & ~self.wready & aw,
            "b": owed["aw"].any() & owed["w"].any() & ~self.bvalid,
            "ar": self.arvalid & ~self.arready,
            "r": owed["ar"].any() & ~self.rvalid,
        }.items():
            self.bounded(m, f"{name}_bounded", waits, self.patience)
        return m
