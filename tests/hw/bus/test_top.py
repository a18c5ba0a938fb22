"""Tests of the top: standard port names, and the same bytes every time."""

import pytest
from amaranth.back import rtlil
from tiers import quick

from weft.config import Config
from weft.hw.bus.top import BareWrapper, IpTop
from weft.ip import Ip

CONFIG = Config(
    rows=1, cols=1, depth=1, lanes=1, requantize="none", activation="none", a_words=32, b_words=32,
    jobs=2,
)
LITE = [
    "awaddr", "awprot", "awvalid", "awready", "wdata", "wstrb", "wvalid", "wready", "bresp",
    "bvalid", "bready", "araddr", "arprot", "arvalid", "arready", "rdata", "rresp", "rvalid",
    "rready",
]
PINS = {
    "wishbone": [
        "wb_clk_i", "wb_rst_i", "wb_cyc_i", "wb_stb_i", "wb_we_i", "wb_adr_i", "wb_sel_i",
        "wb_dat_i", "wb_dat_o", "wb_ack_o", "wb_err_o",
    ],
    "apb": [
        "pclk", "presetn", "paddr", "psel", "penable", "pwrite", "pwdata", "prdata", "pready",
        "pslverr",
    ],
    "axi": ["aclk", "aresetn", *(f"s_axil_{name}" for name in LITE)],
}
PINS["stream"] = PINS["axi"] + [
    "s_axis_tvalid", "s_axis_tready", "s_axis_tdata", "m_axis_tvalid", "m_axis_tready",
    "m_axis_tdata", "m_axis_tlast", "m_axis_tid", "m_axis_tuser",
]


def members(**options):
    """The ports of a top, which is converted too."""
    top = IpTop(Ip(config=CONFIG, **options))
    rtlil.convert(top, name="top", emit_src=False)
    return top.signature.members


@pytest.mark.parametrize("bus", quick(2, [*PINS]))
def test_ports(bus):
    found = members(bus=bus)
    assert list(found) == [*PINS[bus], "irq"]
    assert all(member.is_port for member in found.values())


def test_options_add_ports():
    assert list(members(bus="axi", clocks=2))[:3] == ["aclk", "aresetn", "core_clk"]
    assert "wb_stall_o" in members(bus="wishbone", pipelined=True)


def test_axi_master_has_all_channels():
    pins = members(bus="dma")
    for channel in ("aw", "ar"):
        for name in ("id", "addr", "len", "size", "burst", "lock", "cache", "prot", "qos"):
            assert f"m_axi_{channel}{name}" in pins
    for channel in ("aw", "w", "b", "ar", "r"):
        valid, ready = (pins[f"m_axi_{channel}{pin}"].flow for pin in ("valid", "ready"))
        assert valid != ready
    assert pins["m_axi_rdata"].shape == 8 * CONFIG.bytes_in


@pytest.mark.slow
@pytest.mark.parametrize("bus, clocks", [
    ("stream", 2), pytest.param("wishbone", 1, marks=pytest.mark.slow),
])
def test_conversion_is_deterministic(bus, clocks):
    ip = Ip(config=CONFIG, bus=bus, clocks=clocks)
    texts = [rtlil.convert(IpTop(ip), name=ip.name, emit_src=False) for _ in range(2)]
    assert texts[0] == texts[1]


def test_bare_wrapper_has_the_ports_of_the_core():
    ip = Ip(config=CONFIG, bus="stream")
    wrapper = BareWrapper(ip)
    assert set(wrapper.signature.members) - {*PINS["stream"], "irq"} == {"core", "core_reset"}
    text = rtlil.convert(wrapper, name="wrapper", emit_src=False)
    modules = [line for line in text.splitlines() if line.startswith("module ")]
    assert r"module \wrapper.wrapper.csr" in modules
    assert not any(line.startswith(r"module \wrapper.core") for line in modules)
