"""The rules of writes by AXI4: bursts that are whole keep them, others do not."""

import pytest
from amaranth.sim import Simulator

from weft.sim.formal.axi import WriteRules
from weft.sim.formal.rules import Rules

DEEP = 2
# What happens in each cycle: "aN", an address of N + 1 beats; "w", a beat; "l", the last; "b".
RIGHT = [
    "a1 w l b", "w l a1 b", "w a1 l b", "wa1 l b", "w la1 b", "a0l b", "a1 a0 w l l b b",
    "w l l a1 a0 b b", "a0 a2 l bw w l b", "w l wa1 lb a1 b", "a3 w w w l b",
]
WRONG = {
    "w_last": [
        "a1 l", "l a1", "a0 w", "wa0", "w a0", "w w l a1", "a1 w w", "a1 a0 w l w", "w l l a1 a1",
        "a0 a1 l l", "w w a2 w l", "w w l wa2 l a0", "a0 l bw l a2",
    ],
    "w_few": ["a0 a0 a0", "l l l", "a0 l l l"],
}


@pytest.fixture(autouse=True)
def no_promises(monkeypatch):
    """They are not kept while one pin changes before another."""
    monkeypatch.setattr(Rules, "promised", staticmethod(lambda m, kept: None))


def broken(story):
    """The rules that a story breaks."""
    rules = WriteRules(data_bytes=4, beats=16, deep=DEEP, limit=8)
    found = set()

    async def bench(ctx):
        ctx.set(rules.awready, 1)
        ctx.set(rules.wready, 1)
        ctx.set(rules.bready, 1)
        ctx.set(rules.awsize, 2)
        ctx.set(rules.awburst, 1)
        for now in ["", *story.split(), ""]:
            ctx.set(rules.awvalid, "a" in now)
            if "a" in now:
                ctx.set(rules.awlen, int(now[now.index("a") + 1]))
            ctx.set(rules.wvalid, "w" in now or "l" in now)
            ctx.set(rules.wlast, "l" in now)
            ctx.set(rules.bvalid, "b" in now)
            found.update(name for name in rules.RULES if ctx.get(rules.violated[name]))
            await ctx.tick()

    simulator = Simulator(rules)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


@pytest.mark.parametrize("story", RIGHT)
def test_whole_bursts_keep_the_rules(story):
    assert broken(story) == set()


@pytest.mark.parametrize(
    ("rule", "story"), [(rule, story) for rule, some in WRONG.items() for story in some]
)
def test_others_break_one(rule, story):
    assert rule in broken(story)
