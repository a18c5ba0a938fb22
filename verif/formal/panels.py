"""Rules of the gate of panels: a panel reads nothing that the job before stores later."""

from amaranth.hdl import Cat, Module

from verif.formal.bench import FormalBench
from verif.formal.rules import Rules
from weft.config import Config
from weft.hw.network_core.steps.panels import PanelGate
from weft.network_core.config import NetworkCoreConfig

__all__ = ["GateRules", "gate_bench"]

# Few banks and words: their comparisons are hard to prove.
CHIP = NetworkCoreConfig(
    array=Config(rows=2, cols=2, depth=2, lanes=1, requantize="single", activation="none"),
    words=16, read_vectors=1, early=True,
)
BANK, WORD = 2, 5  # bits of an address


class GateRules(Rules):
    """What a panel reads, and where the job before stores when it has passed.

    A store in a cycle is at the frontier of two cycles before, or behind it; the frontier does not
    move back. A panel that passes in a cycle sees the stores of the cycles before. So it may read
    what lies before the frontier of two cycles before. The span is 0 here: its subtraction has
    tests, and a proof of it takes too long.
    """

    PINS = {
        "i_valid": 1, "o_valid": 1, "o_ready": 1, "follows": 1,
        **{
            f"{name}_{part}": width for name in ("origin", "span", "frontier")
            for part, width in (("bank", BANK), ("word", WORD))
        },
    }
    RULES = {
        "stored": "when a panel passes, all later stores are behind the vectors that it may read",
        "at_once": "a panel passes at once if the job before has stored all its results",
    }
    COVERS = {
        "waits": "a panel waits for the job before",
        "early": "a panel passes before the job before has stored all its results",
        "two": "two panels pass one after the other before that",
    }

    def elaborate(self, platform):
        m = Module()
        origin, frontier = (self._place(m, name) for name in ("origin", "frontier"))
        follows, before = self.follows, self.past(m, self.follows, "before")
        stores = self._stores(m, before, frontier)
        self._panels(m, follows, before, origin)

        takes = self.o_valid & self.o_ready & follows
        self.check(m, "stored", ~takes | (stores > origin))
        self.check(m, "at_once", ~self.i_valid | follows | self.o_valid)
        taken = self.past(m, takes, "taken")
        self.covers(m, {
            "waits": self.i_valid & ~self.o_valid, "early": takes,
            "two": takes & self.past(m, taken, "taken_before"),
        })
        return m

    def _place(self, m, name):
        """An address, whose bank exists; larger for the vectors behind it."""
        bank, word = (getattr(self, f"{name}_{part}") for part in ("bank", "word"))
        self.assume(m, bank < CHIP.banks)
        return Cat(bank, word).as_signed()

    def _stores(self, m, before, frontier):
        """The first vector that may be stored in this cycle."""
        last = self.past(m, frontier, "last_frontier")
        self.assume(m, ~before | (frontier >= last))
        return self.past(m, last, "stores")

    def _panels(self, m, follows, before, origin):
        """What the job and its panels do. A panel comes some cycles after the start of the job."""
        self.assume(m, ~(self.i_valid & follows) | before & self.past(m, before, "before_that"))
        self.assume(m, ~Cat(self.span_bank, self.span_word).any())
        stalled = self.past(m, self.i_valid & ~(self.o_valid & self.o_ready), "stalled")
        self.assume(m, ~stalled | self.i_valid & (self.past(m, origin, "last_origin") == origin))


def gate_bench():
    """The gate of panels, with the frontier of the job before."""
    return FormalBench(PanelGate(CHIP), {"": GateRules()})
