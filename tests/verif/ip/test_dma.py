"""An IP core with a DMA engine and cocotbext's AXI4 slave, on both simulators."""

import re

import pytest
from tiers import tiers

from verif.ip.ip_testbench import env
from weft.config import Config
from weft.hw.bus.top import IpTop
from weft.hw.export import to_verilog
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


def benches(config, simulator, verilog=None, module="verif.ip.dma", **options):
    ip = Ip(config=config, bus="dma", window=simulator == "icarus")
    return run(
        config, simulator, build_dir=folder() / "ip", top=ip.name, env=env(ip),
        verilog=verilog or to_verilog(IpTop(ip), name=ip.name), modules=(module,), **options,
    )


@pytest.mark.parametrize("case", tiers(CONFIGS, "int8-wide"))
def test_benches_pass(case):
    simulator, config = case
    outcome = benches(config, simulator)
    print(outcome)
    assert outcome.tests == 8 and outcome.failures == 0


@pytest.mark.parametrize("pin, width, value, message", [
    ("m_axi_wdata", 32, "32'h7", "memory differs from the expected contents"),
    ("m_axi_arlen", 8, "8'd16", "assert"),
])
def test_benches_find_a_broken_core(pin, width, value, message):
    simulator, config = CONFIGS["int8-wide"]
    ip = Ip(config=config, bus="dma", window=True)
    verilog, count = re.subn(  # where the engine's port is connected
        rf"(\.axi__\w+__payload\(\{{[^}}]*?)\b{pin}\b", r"\1unused",
        to_verilog(IpTop(ip), name=ip.name),
    )
    assert count == 1
    line = f"wire [{width - 1}:0] unused;\n  assign {pin} = {value};\nendmodule"
    with pytest.raises(BenchError, match=message):
        benches(config, simulator, verilog.replace("endmodule", line, 1), testcase="shapes/pause=0")
