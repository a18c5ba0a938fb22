"""An IP core with a DMA engine and cocotbext's AXI4 slave, on both simulators."""

import pytest
from broken_verilog import with_output
from ip_verilog import ip_verilog
from tiers import tiers

from verif.ip.ip_testbench import env
from weft.config import Config
from weft.ip import Ip
from weft.sim.build import folder
from weft.sim.runner import BenchError, run

SMALL = {"a_words": 256, "b_words": 256}
CONFIGS = {
    "int8": ("verilator", Config(rows=4, cols=4, activation="none", **SMALL)),
    "int8-wide": ("icarus", Config(
        rows=2, cols=4, depth=2, lanes=2, bytes_in=4, bytes_out=4, requantize="none", **SMALL
    )),
    "bf16": ("verilator", Config(
        rows=2, cols=4, dtype="bf16", bytes_in=8, bytes_out=8, c_words=32, **SMALL
    )),
}


def core(config, simulator):
    return Ip(config=config, bus="dma", window=simulator == "icarus")


def benches(config, simulator, verilog=None, **options):
    ip = core(config, simulator)
    return run(
        config, simulator, build_dir=folder() / "ip", top=ip.name, env=env(ip),
        verilog=verilog or ip_verilog(ip), modules=("verif.ip.dma",), **options,
    )


@pytest.mark.parametrize("case", tiers(CONFIGS, long=CONFIGS))
def test_benches_pass(case):
    simulator, config = case
    outcome = benches(config, simulator)
    print(outcome)
    assert outcome.tests == 8 and outcome.failures == 0


@pytest.mark.slow
@pytest.mark.parametrize("pin, value, message", [
    ("m_axi_wdata", "32'h7", "memory differs from the expected contents"),
    ("m_axi_arlen", "8'd16", "assert"),
])
def test_benches_find_a_broken_core(pin, value, message):
    simulator, config = CONFIGS["int8-wide"]
    ip = core(config, simulator)
    broken = with_output(ip_verilog(ip), ip.name, pin, value)
    with pytest.raises(BenchError, match=message):
        benches(config, simulator, broken, testcase="shapes/pause=0")
