"""The table of buses: each object is complete, and answers for its own names only."""

import pytest

from weft.buses import BUSES, Bus, DataPath
from weft.config import Config
from weft.ip import OPTIONS

# Clock, reset, level of an active reset, way of commands and results.
EXPECTED = {
    "axi": ("aclk", "aresetn", 0, DataPath.FIFO_PORTS),
    "apb": ("pclk", "presetn", 0, DataPath.FIFO_PORTS),
    "wishbone": ("wb_clk_i", "wb_rst_i", 1, DataPath.FIFO_PORTS),
    "stream": ("aclk", "aresetn", 0, DataPath.STREAMS),
    "dma": ("aclk", "aresetn", 0, DataPath.DMA),
}
buses = pytest.mark.parametrize("bus", BUSES.values(), ids=BUSES)


def test_clocks_resets_and_data_paths():
    found = {
        name: (bus.clock, bus.reset, bus.reset_active, bus.data_path)
        for name, bus in BUSES.items()
    }
    assert found == EXPECTED


@buses
def test_every_attribute_is_set(bus):
    missing = [name for name in Bus.__annotations__ if not hasattr(bus, name)]
    assert missing == []
    assert BUSES[bus.name] is bus


@buses
def test_options_are_fields_of_an_ip(bus):
    assert {*bus.options} <= {*OPTIONS}


@pytest.mark.parametrize("option, allowed", [("pipelined", ["wishbone"]), ("window", ["dma"])])
def test_an_option_belongs_to_one_bus(option, allowed):
    assert [name for name, bus in BUSES.items() if option in bus.options] == allowed


@buses
def test_diagrams_draw_ports_of_the_interfaces(bus):
    """Each row is a port of the bus, and a diagram's clock is the one of the bus."""
    known = {i.prefix + port for i in bus.interfaces for port in i.ports}
    for options in ((), bus.options):
        diagrams = bus.diagrams(options)
        assert diagrams
        assert {diagram.clock for diagram in diagrams} == {bus.clock}
        assert {name for diagram in diagrams for name, _ in diagram.rows} <= known


@buses
def test_the_default_config_has_no_problem(bus):
    assert [*bus.problems(Config())] == []


def test_streams_may_be_narrow():
    narrow = Config(bytes_in=1, bytes_out=4)
    found = {name: [*bus.problems(narrow)] for name, bus in BUSES.items()}
    assert found.pop("stream") == []
    for name, problems in found.items():
        assert problems[0] == f"bytes_in must be at least 4 with bus {name!r}, not 1"
