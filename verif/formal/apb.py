"""The rules of an AMBA APB3 slave."""

from amaranth.hdl import Module

from verif.formal.rules import Rules

__all__ = ["ApbRules"]


class ApbRules(Rules):
    """The slave's side of APB3: PREADY ends a transfer, PSLVERR says that it failed.

    APB3 lets PREADY and PSLVERR have any value outside the last cycle of a transfer; these rules
    are stricter.

    Source: ARM IHI 0024, AMBA APB Protocol Specification: 3.1 to 3.4, 4.1.

    Parameters
    ----------
    limit : int
        Cycles of wait states that a transfer may have.
    """

    PINS = {
        "paddr": 12, "psel": 1, "penable": 1, "pwrite": 1, "pwdata": 32,
        "prdata": 32, "pready": 1, "pslverr": 1,
    }
    RULES = {
        "asked": "PREADY is high only in the access phase of a transfer",
        "error_at_end": "PSLVERR is high only in the last cycle of a transfer",
        "after_reset": "PREADY is low in the cycle after a reset",
        "bounded": "a transfer ends in bounded time",
    }
    COVERS = {
        "write": "a write ends without an error", "write_error": "a write ends in an error",
        "read": "a read ends without an error", "read_error": "a read ends in an error",
        "no_wait": "a transfer has no wait state", "wait": "a transfer has a wait state",
        "next": "a transfer follows another without an idle cycle",
    }

    def __init__(self, *, limit):
        self.limit = limit
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        access = self.psel & self.penable
        end, wait = access & self.pready, access & ~self.pready
        setup = self.psel & ~self.penable
        continues = self.past(m, setup | wait, "continues")
        self._assume_master(m, continues)
        self.check(m, "asked", ~self.pready | access)
        self.check(m, "error_at_end", ~self.pslverr | end)
        self.check(m, "after_reset", ~(self.after_reset(m) & self.pready))
        self.check_bound(m, "bounded", wait, self.limit)
        error = self.pslverr
        self.covers(m, {
            "write": end & self.pwrite & ~error, "write_error": end & self.pwrite & error,
            "read": end & ~self.pwrite & ~error, "read_error": end & ~self.pwrite & error,
            "no_wait": end & self.past(m, setup, "past_setup"), "wait": wait,
            "next": setup & self.past(m, end, "past_end"),
        })
        return m

    def _assume_master(self, m, continues):
        """PENABLE follows the setup cycle and stays, with the same access, until PREADY."""
        self.assume(m, self.penable == continues)
        same = self.psel
        for value in (self.paddr, self.pwrite):
            same = same & (self.past(m, value) == value)
        same = same & (~self.pwrite | (self.past(m, self.pwdata) == self.pwdata))
        self.assume(m, ~continues | same)
