"""The DMA engine in its IP core, before a third party's memory, on both simulators."""

import re

import pytest

from weft.config import Config
from weft.hw.export import plain
from weft.hw.ip.top import IpTop
from weft.ip import Ip
from weft.sim.build import folder
from weft.sim.ip.rig import facts
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


def benches(config, simulator, verilog=None, module="weft.sim.ip.dma", **options):
    ip = Ip(config=config, bus="dma")
    return run(
        config, simulator, build_dir=folder() / "ip", top=ip.name, facts=facts(ip),
        verilog=verilog or plain(IpTop(ip), name=ip.name), modules=(module,), **options,
    )


@pytest.mark.parametrize("case", CONFIGS)
def test_benches_pass(case):
    simulator, config = CONFIGS[case]
    outcome = benches(config, simulator)
    print(outcome)
    assert outcome.tests == 7 and outcome.failures == 0


@pytest.mark.parametrize("pin, broken, message", [
    ("m_axi_wstrb", "4'hf", "memory must be as it is expected"),  # what pads a row is written too
    ("m_axi_arlen", "8'd16", "assert .* <= 16"),
])
def test_benches_fail_where_a_core_is_wrong(pin, broken, message):
    simulator, config = CONFIGS["int8-wide"]
    ip = Ip(config=config, bus="dma")
    head, top, rest = re.split(
        r"(?ms)^(module \w+\(.*?^endmodule)", plain(IpTop(ip), name=ip.name), maxsplit=1
    )
    assert f".{pin}({pin})" in top
    mutant = top.replace(f".{pin}({pin})", f".{pin}()")
    mutant = mutant.replace("endmodule", f"assign {pin} = {broken};\nendmodule")
    with pytest.raises(BenchError, match=message):
        benches(config, simulator, head + mutant + rest, testcase="shapes/pause=0")
