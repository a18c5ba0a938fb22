"""The clamp of an int8 epilogue: every edge of the sum, the zero point and the limits."""

from itertools import product

from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from verif.amaranth_bench import play
from weft.hw.output.lanes import clamp
from weft.latencies import CLAMP

EDGES = [-(1 << 31), -1025, -1024, -1023, -129, -128, 0, 127, 128, 1022, 1023, 1024, (1 << 31) - 1]


class Clamp(wiring.Component):
    """The function as a component."""

    y: In(signed(32))
    zero: In(signed(9))
    low: In(signed(9))
    high: In(signed(9))
    clamped: Out(signed(9))

    def elaborate(self, platform):
        m = Module()
        value = clamp(m, self.y, zero=self.zero, low=self.low, high=self.high, name=0)
        m.d.comb += self.clamped.eq(value)
        return m


def test_every_edge_is_clamped():
    limits = (-128, 127), (-128, 255), (0, 255), (-3, 5), (7, 7)
    cases = list(product(EDGES, (-128, 0, 127, 255), limits))
    script = [{} for _ in range(len(cases) + CLAMP)]
    for now, (y, zero, (low, high)) in enumerate(cases):
        script[now]["y"] = y
        script[now + 2]["zero"] = zero
        script[now + 3] |= {"low": low, "high": high}
    (found,) = play(Clamp(), [*script, {}], "clamped")
    assert found[CLAMP : CLAMP + len(cases)] == [
        min(max(y + zero, low), high) for y, zero, (low, high) in cases
    ]
