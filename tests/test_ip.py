"""Tests of the description of an IP core: names and validation."""

import pytest
from rejects import rejects

from weft.buses import BUSES
from weft.config import Config, ConfigError
from weft.ip import Ip


@pytest.mark.parametrize("bus", BUSES)
def test_default_config_on_every_bus(bus):
    ip = Ip(config=Config(), bus=bus)
    assert ip.name == f"weft_{bus}_8x8x1"
    assert ip.has_fifo_ports == (bus in ("axi", "wishbone", "apb"))


def test_name_starts_with_the_prefix():
    assert Ip(config=Config(), bus="axi", prefix="mm_2").name == "mm_2_axi_8x8x1"
    assert Ip(config=Config(), bus="axi", prefix="a" * 24).name.startswith("a" * 24 + "_axi")


def test_cores_with_different_pins_have_different_names():
    options = [
        {"bus": "wishbone"}, {"bus": "wishbone", "pipelined": True},
        {"bus": "wishbone", "clocks": 2}, {"bus": "wishbone", "pipelined": True, "clocks": 2},
        {"bus": "dma"}, {"bus": "dma", "window": True}, {"bus": "dma", "window": True, "clocks": 2},
    ]
    names = [Ip(config=Config(), **one).name for one in options]
    assert names[3] == "weft_wishbone_pipelined_two_clocks_8x8x1"
    assert names[5:] == ["weft_dma_window_8x8x1", "weft_dma_window_two_clocks_8x8x1"]
    assert len(set(names)) == 7


@pytest.mark.parametrize("fields, options, message", [
    ({}, {"bus": "pci"}, "bus must be one of axi, wishbone, apb, stream, dma, not 'pci'"),
    ({}, {"bus": "axi", "clocks": 3}, "clocks must be 1 or 2, not 3"),
    ({}, {"bus": "axi", "pipelined": True}, "pipelined must be False with bus 'axi', not True"),
    ({}, {"bus": "axi", "window": True}, "window must be False with bus 'axi', not True"),
    ({"bytes_in": 2}, {"bus": "axi"}, "bytes_in must be at least 4 with bus 'axi', not 2"),
    ({"bytes_out": 8}, {"bus": "dma"},
     "bytes_in and bytes_out must be equal with bus 'dma', not 16 and 8"),
    ({"depth": 3}, {"bus": "dma"}, "depth must be a power of two with bus 'dma', not 3"),
    ({"cols": 6}, {"bus": "dma"}, "cols must be a multiple of lanes (4) with bus 'dma', not 6"),
])
def test_rejects_wrong_options(fields, options, message):
    with rejects(ConfigError, message):
        Ip(config=Config(**fields), **options)


@pytest.mark.parametrize(
    "prefix", ["", "Mm", "1x", "a-b", "a__b", "a_", "a" * 25, "a\n", None]
)
def test_rejects_wrong_prefixes(prefix):
    with rejects(ConfigError, (
        "prefix must be 1 to 24 lower-case letters, digits and _, a letter first, no _ last and no"
        f" two side by side, not {prefix!r}"
    )):
        Ip(config=Config(), bus="axi", prefix=prefix)


def test_reports_all_problems_at_once():
    with pytest.raises(ConfigError) as error:
        Ip(config=Config(depth=3, cols=6), bus="dma", clocks=0)
    assert len(str(error.value).splitlines()) == 3


@pytest.mark.parametrize("bus", ["stream", "axi"])
def test_only_streams_may_be_narrow(bus):
    config = Config(bytes_in=1, bytes_out=4)
    if bus == "stream":
        assert Ip(config=config, bus=bus).config is config
    else:
        with pytest.raises(ConfigError, match="bytes_in must be at least 4"):
            Ip(config=config, bus=bus)
