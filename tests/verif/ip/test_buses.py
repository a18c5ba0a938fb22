"""Tests of IP cores on both simulators, with bus models of third parties, against golden."""

import re

import pytest
from tiers import tiers

from verif.ip import MODULES
from verif.ip.ip_testbench import env
from weft.config import Config
from weft.hw.bus.top import IpTop
from weft.hw.export import to_verilog
from weft.ip import Ip
from weft.sim.build import folder
from weft.sim.runner import BenchError, run

SMALL = {"a_words": 64, "b_words": 64, "activation": "none"}
NARROW = Config(rows=2, cols=3, depth=2, lanes=2, bytes_in=4, bytes_out=8, jobs=2, **SMALL)
WIDE = Config(rows=2, cols=2, depth=1, **SMALL)
TINY = Config(rows=2, cols=2, depth=1, lanes=1, bytes_in=4, bytes_out=4, requantize="none", **SMALL)
FLOAT = Config(dtype="bf16", rows=2, cols=2, a_words=64, b_words=64, c_words=64)

CASES = {
    "stream": ("icarus", Ip(config=NARROW, bus="stream")),
    "axi-clocks": ("icarus", Ip(config=NARROW, bus="axi", clocks=2)),
    "wishbone": ("icarus", Ip(config=TINY, bus="wishbone")),
    "apb": ("icarus", Ip(config=TINY, bus="apb")),
    "apb-clocks": ("verilator", Ip(config=NARROW, bus="apb", clocks=2)),
    "stream-bf16-clocks": ("icarus", Ip(config=FLOAT, bus="stream", clocks=2)),
    "axi-wide": ("icarus", Ip(config=WIDE, bus="axi")),
    "axi-clocks-verilator": ("verilator", Ip(config=NARROW, bus="axi", clocks=2)),
    "wishbone-pipelined": ("verilator", Ip(config=NARROW, bus="wishbone", pipelined=True)),
}


def benches(ip, simulator, verilog=None, **options):
    verilog = verilog or to_verilog(IpTop(ip), name=ip.name)
    return run(
        ip.config, simulator, build_dir=folder() / "ip", verilog=verilog, top=ip.name,
        env=env(ip), **{"modules": MODULES} | options,
    )


@pytest.mark.parametrize("case", tiers(CASES, "axi-clocks", "wishbone-pipelined"))
def test_benches_pass(case):
    simulator, ip = case
    outcome = benches(ip, simulator)
    print(outcome)
    assert outcome.tests == 16 and outcome.failures == 0


TESTED = Ip(config=TINY, bus="stream")


class Broken(IpTop):
    """An IP core with one more statement, which is a bug."""

    def __init__(self, ip, statement):
        self.statement = statement
        super().__init__(ip)

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.statement(self)
        return m


@pytest.mark.parametrize("statement, testcase, message", [
    (lambda top: top.m_axis_tdata.eq(top.m_axis_tready), "products", "must stay until|word 0"),
    (lambda top: top.m_axis_tlast.eq(1), "products", r"last of job \d+ must come with"),
    (lambda top: top.irq.eq(0), "interrupts", "assert 0 == 1"),
    (lambda top: top.s_axil_rresp.eq(0), "unknown_addresses", "0x"),
], ids=["data", "last", "irq", "response"])
def test_benches_find_a_bug(statement, testcase, message):
    broken = to_verilog(Broken(TESTED, statement), name=TESTED.name)
    with pytest.raises(BenchError, match=message):
        benches(TESTED, "icarus", broken, testcase=testcase)


@pytest.mark.slow
@pytest.mark.parametrize("statement, testcase, message", [
    (lambda top: top.pslverr.eq(0), "unknown_addresses", "0x"),
    (lambda top: top.prdata.eq(1), "core_registers", "register magic must be"),
], ids=["error", "data"])
def test_apb_benches_find_a_bug(statement, testcase, message):
    ip = CASES["apb"][1]
    broken = to_verilog(Broken(ip, statement), name=ip.name)
    with pytest.raises(BenchError, match=message):
        benches(ip, "icarus", broken, testcase=testcase)


def test_benches_find_an_unknown_payload():
    verilog = to_verilog(IpTop(TESTED), name=TESTED.name)
    broken, count = re.subn(r"\(s_axil_rdata\)", "()", verilog, count=1)
    assert count == 1
    with pytest.raises(BenchError, match="s_axil_rdata must be known, not Z"):
        benches(TESTED, "icarus", broken, testcase="products")
