"""The proof engine: its verdicts on counters are correct."""

import pytest
from amaranth.hdl import Assume, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verif.formal.engine import PROVE, REACH, decide

ALL = dict.fromkeys(["far[0]", "far[1]", "far[2]", "far[3]", "own[0]"], PROVE)


class Counter(wiring.Component):
    """Counts to ``top`` and restarts, while ``en``; ``disabled`` assumes that ``en`` is low."""

    en: In(1)
    far: Out(4)
    own: Out(1)

    def __init__(self, top, disabled=False):
        self.top = top
        self.disabled = disabled
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        count = Signal(8)
        with m.If(self.en):
            m.d.sync += count.eq(count + 1)
        with m.If(count == self.top):
            m.d.sync += count.eq(0)
        m.d.comb += [
            *(self.far[n].eq(count > 50 * n) for n in range(4)), self.own.eq(count == self.top),
        ]
        if self.disabled:
            m.d.comb += Assume(~self.en)
        return m


def answers(verdicts):
    return {name: verdict.answer for name, verdict in verdicts.items()}


def test_a_counter_reaches_its_top():
    [found] = decide([Counter(100)], [ALL])
    assert answers(found) == {
        "far[0]": "reached", "far[1]": "reached", "far[2]": "never", "far[3]": "never",
        "own[0]": "reached",
    }
    assert found["far[2]"].clauses > 0 == found["far[0]"].clauses


def test_uses_assumptions():
    assert set(answers(*decide([Counter(100, disabled=True)], [ALL])).values()) == {"never"}


def test_decides_only_the_given_bits():
    assert answers(*decide([Counter(100)], [{"own[0]": REACH}])) == {"own[0]": "reached"}


@pytest.mark.slow
def test_no_verdict_in_time_is_an_error():
    class Hard(wiring.Component):
        """A product of two free numbers is never this prime."""

        a: In(24)
        b: In(24)
        found: Out(1)

        def elaborate(self, platform):
            m = Module()
            product = Signal(48)
            m.d.sync += product.eq(self.a * self.b)
            prime = (1 << 47) - 115
            m.d.comb += self.found.eq((product == prime) & (self.a > 1) & (self.b > 1))
            return m

    with pytest.raises(RuntimeError, match=r"found\[0\]: no verdict after 1 seconds"):
        decide([Hard()], [{"found[0]": PROVE}], seconds=1)


def test_a_design_that_yosys_cannot_read_is_an_error():
    with pytest.raises(RuntimeError, match="Yosys failed to turn the design into gates: ERROR"):
        decide([Counter(100)], [ALL], cuts="no_such_command\n")
