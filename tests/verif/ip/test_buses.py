"""Tests of IP cores on both simulators, with bus models of third parties, against golden."""

import pytest
from broken_verilog import with_output
from ip_verilog import ip_verilog
from tiers import tiers

from verif.ip import MODULES
from verif.ip.ip_testbench import env
from weft.config import Config
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
    return run(
        ip.array, simulator, build_dir=folder() / "ip", verilog=verilog or ip_verilog(ip),
        top=ip.name, env=env(ip), **{"modules": MODULES} | options,
    )


@pytest.mark.parametrize("case", tiers(
    CASES, long={
        "apb", "apb-clocks", "stream-bf16-clocks", "axi-wide", "axi-clocks-verilator", "wishbone",
        "stream", "wishbone-pipelined",
    }
))
def test_benches_pass(case):
    simulator, ip = case
    outcome = benches(ip, simulator)
    print(outcome)
    assert outcome.tests == 16 and outcome.failures == 0


TESTED = Ip(config=TINY, bus="stream")


@pytest.mark.slow
@pytest.mark.parametrize("port, value, testcase, message", [
    ("m_axis_tdata", "m_axis_tready", "products", "must stay until|word 0"),
    pytest.param(
        "m_axis_tlast", "1'd1", "products", r"last of job \d+ must come with",
        marks=pytest.mark.long,
    ),
    pytest.param("irq", "1'd0", "interrupts", "assert 0 == 1", marks=pytest.mark.slow),
    pytest.param("s_axil_rresp", "2'd0", "unknown_addresses", "0x", marks=pytest.mark.slow),
], ids=["data", "last", "irq", "response"])
def test_benches_find_a_bug(port, value, testcase, message):
    broken = with_output(ip_verilog(TESTED), TESTED.name, port, value)
    with pytest.raises(BenchError, match=message):
        benches(TESTED, "icarus", broken, testcase=testcase)


@pytest.mark.slow
@pytest.mark.parametrize("port, value, testcase, message", [
    ("pslverr", "1'd0", "unknown_addresses", "0x"),
    ("prdata", "32'd1", "core_registers", "register magic must be"),
], ids=["error", "data"])
def test_apb_benches_find_a_bug(port, value, testcase, message):
    ip = CASES["apb"][1]
    broken = with_output(ip_verilog(ip), ip.name, port, value)
    with pytest.raises(BenchError, match=message):
        benches(ip, "icarus", broken, testcase=testcase)


@pytest.mark.slow
def test_benches_find_an_unknown_payload():
    broken = with_output(ip_verilog(TESTED), TESTED.name, "s_axil_rdata", "32'bz")
    with pytest.raises(BenchError, match="s_axil_rdata must be known, not Z"):
        benches(TESTED, "icarus", broken, testcase="products")
