"""The supply of the ButterStick: its voltage, and when the regulators are on."""

import pytest
from amaranth.lib import io
from amaranth.sim import Simulator

from weft.boards.butterstick import Supply

CLOCK = 0.1  # MHz


class SupplyWithPins(Supply):
    """A supply that is its own platform, with the pins that it asks for."""

    def __init__(self):
        super().__init__(clock=CLOCK)
        self.pdm, self.en, self.led_green = (io.SimulationPort("o", n) for n in (3, 1, 1))

    def request(self, name, *, dir):
        return self if name == "vccio_ctrl" else getattr(self, name)

    def elaborate(self, platform):
        return super().elaborate(self)


@pytest.mark.parametrize("volts", [1.8, 2.5, 3.3])
def test_the_level_gives_the_voltage(volts):
    """By Kirchhoff's law at the feedback of the regulator, which it holds at 0.6 V."""
    pin = 3.3 * Supply.level(volts) / Supply.LEVELS
    assert 0 < pin < 3.3
    through_lower, from_pin = 0.6 / 13_000, (pin - 0.6) / 68_000
    assert 0.6 + 53_600 * (through_lower - from_pin) == pytest.approx(volts, abs=0.003)


def test_the_regulators_are_on_after_the_filter_has_settled():
    supply = SupplyWithPins()
    rises, high = {}, 0

    async def bench(ctx):
        nonlocal high
        for cycle in range(20_000):
            await ctx.tick()
            levels = ctx.get(supply.pdm.o)
            assert levels in (0, 7) and ctx.get(supply.led_green.o) == 1
            high += cycle < Supply.LEVELS and levels == 7
            for name, signal in (("on", supply.en.o), ("ready", supply.ready)):
                if ctx.get(signal):
                    rises.setdefault(name, cycle / (CLOCK * 1e6))
                else:
                    assert name not in rises

    simulator = Simulator(supply)
    simulator.add_clock(1e-6 / CLOCK)
    simulator.add_testbench(bench)
    simulator.run()
    assert high == Supply.level(1.8)
    # Five times the filter's 68 kOhm * 0.1 uF are 34 ms; the period of a level is 10 ms here.
    assert 0.160 < rises["on"] < 0.190 and 0 < rises["ready"] - rises["on"] < 0.021
