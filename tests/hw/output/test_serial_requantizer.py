"""The serial requantizer against golden: all digits, lanes and widths of the stream."""

import pytest
from requantizer_bench import RequantizerBench
from tiers import tiers

from weft.config import Config
from weft.hw.output.serial_requantizer import SerialRequantizer

SMALL = {"rows": 3, "cols": 5, "a_words": 64, "b_words": 64}
CONFIGS = {
    "up": Config(target="ice40up", scale_cycles=8, lanes=1, bytes_in=4, bytes_out=1, **SMALL),
    "fast": Config(target="ice40hx", scale_cycles=4, lanes=1, bytes_in=8, **SMALL),
    "lanes": Config(
        target="ice40hx", scale_cycles=8, lanes=4, bytes_in=2, activation="none", **SMALL
    ),
    "pairs": Config(target="ice40hx", scale_cycles=16, lanes=2, bytes_in=1, **SMALL),
    "slow": Config(
        target="ice40hx", scale_cycles=32, lanes=1, bytes_in=8, activation="none", **SMALL
    ),
    "fip": Config(
        target="ice40hx", scale_cycles=4, depth=2, lanes=2, bytes_in=4, activation="none", **SMALL
    ),
}


@pytest.mark.parametrize("config", tiers(CONFIGS, "up", "fip"))
@pytest.mark.parametrize("idle", [pytest.param(0, marks=pytest.mark.slow), 0.5])
def test_results_equal_goldens_after_the_latency(config, idle):
    bench = RequantizerBench(config)
    assert isinstance(bench.dut, SerialRequantizer)
    bench.check(40 if config.scale_cycles > 8 else 100, idle)
