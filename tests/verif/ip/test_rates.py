"""Test of the steady-state rate behind AXI4-Stream, compared with the bare core's."""

import pytest

from verif.ip.ip_testbench import env
from weft.config import Config
from weft.hw.bus.top import IpTop
from weft.hw.export import to_verilog
from weft.ip import Ip
from weft.sim.build import folder
from weft.sim.runner import run


@pytest.mark.long
def test_streams_keep_up_with_128_cubed():
    ip = Ip(config=Config(depth=2, activation="none"), bus="stream")
    outcome = run(
        ip.array, "verilator", build_dir=folder() / "ip", top=ip.name, env=env(ip),
        verilog=to_verilog(IpTop(ip), name=ip.name), modules=["verif.ip.rates"],
    )
    assert outcome.tests == 1 and outcome.cycles > 4 * 128**3 / ip.array.peak
