"""The rules of AXI4 writes: complete bursts keep them, others violate them."""

import pytest
from amaranth.sim import Simulator

from verif.formal.axi import WriteRules
from verif.formal.rules import Rules

MAX_BURSTS = 2
# The transfers of each cycle: "aN", an address of N + 1 beats; "w", a beat; "l", the last beat of
# a burst; "b", a response.
HOLDS = [
    "a1 w l b", "w l a1 b", "w a1 l b", "wa1 l b", "w la1 b", "a0l b", "a1 a0 w l l b b",
    "w l l a1 a0 b b", "a0 a2 l bw w l b", "w l wa1 lb a1 b", "a3 w w w l b",
]
VIOLATED = {
    "w_last": [
        "a1 l", "l a1", "a0 w", "wa0", "w a0", "w w l a1", "a1 w w", "a1 a0 w l w", "w l l a1 a1",
        "a0 a1 l l", "w w a2 w l", "w w l wa2 l a0", "a0 l bw l a2",
    ],
    "w_limit": ["a0 a0 a0", "l l l", "a0 l l l"],
}


@pytest.fixture(autouse=True)
def no_assumptions(monkeypatch):
    """Drop the assumptions: they fail while the bench changes one pin before another."""
    monkeypatch.setattr(Rules, "assume", staticmethod(lambda m, holds: None))


def violated(transfers):
    """The rules that a sequence of transfers violates."""
    rules = WriteRules(data_bytes=4, beats=16, max_bursts=MAX_BURSTS, limit=8)
    found = set()

    async def bench(ctx):
        ctx.set(rules.awready, 1)
        ctx.set(rules.wready, 1)
        ctx.set(rules.bready, 1)
        ctx.set(rules.awsize, 2)
        ctx.set(rules.awburst, 1)
        for cycle in ["", *transfers.split(), ""]:
            ctx.set(rules.awvalid, "a" in cycle)
            if "a" in cycle:
                ctx.set(rules.awlen, int(cycle[cycle.index("a") + 1]))
            ctx.set(rules.wvalid, "w" in cycle or "l" in cycle)
            ctx.set(rules.wlast, "l" in cycle)
            ctx.set(rules.bvalid, "b" in cycle)
            found.update(name for name in rules.RULES if ctx.get(rules.violated[name]))
            await ctx.tick()

    simulator = Simulator(rules)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


@pytest.mark.parametrize("transfers", HOLDS)
def test_complete_bursts_keep_the_rules(transfers):
    assert violated(transfers) == set()


@pytest.mark.parametrize(
    ("rule", "transfers"),
    [(rule, transfers) for rule, cases in VIOLATED.items() for transfers in cases],
)
def test_other_bursts_violate_a_rule(rule, transfers):
    assert rule in violated(transfers)
