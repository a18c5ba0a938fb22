"""The benches on BF16 cores with both simulators; a failure names its seed."""

import pytest
from tiers import tiers

from weft.config import Config
from weft.hw.export import verilog
from weft.sim.build import folder
from weft.sim.runner import BenchError, run

SMALL = {"dtype": "bf16", "a_words": 256, "b_words": 256}
TINY = Config(
    rows=1, cols=1, lanes=1, c_words=0, activation="none", bytes_in=64, bytes_out=1, **SMALL
)
ICARUS = {
    "1x3": Config(rows=1, cols=3, lanes=2, c_words=32, bytes_out=4, **SMALL),
    "1x1": TINY,
}
VERILATOR = {
    "4x4": Config(rows=4, cols=4, dtype="bf16"),
    "3x2": Config(
        rows=3, cols=2, hop=1, flush_subnormals=True, lanes=1, c_words=64, bytes_in=4, bytes_out=2,
        **SMALL,
    ),
}


@pytest.mark.parametrize("config", tiers(ICARUS))
def test_benches_pass_on_icarus(config):
    outcome = run(config, "icarus", build_dir=folder() / "benches")
    assert outcome.tests == (53 if config.c_words else 44) and outcome.failures == 0


@pytest.mark.parametrize("config", tiers(VERILATOR))
def test_benches_pass_on_verilator(config):
    outcome = run(config, "verilator", build_dir=folder() / "benches")
    assert outcome.tests == 92 and outcome.failures == 0


def test_a_failure_names_the_seed_of_its_product(tmp_path):
    text = verilog(TINY)
    broken = text.replace("assign res_data = ", "assign res_data = 8'd1 ^ ")
    assert broken != text
    with pytest.raises(BenchError, match=r"seed 1: 1 of 1 failed.*\n  seeds: job \d+ of seed 0, "):
        run(TINY, "icarus", build_dir=tmp_path, testcase="seeds", verilog=broken)
