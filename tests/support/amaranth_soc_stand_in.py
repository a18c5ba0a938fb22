"""A stand-in for the parts of amaranth-soc that Weft uses; PyPI has no release of amaranth-soc.

With the path of a checkout in WEFT_AMARANTH_SOC, the tests run on amaranth-soc itself.
"""

import os
import sys
import types

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CHECKOUT", "MemoryMap", "install"]

CHECKOUT = os.environ.get("WEFT_AMARANTH_SOC")


class Signature(wiring.Signature):
    """The members of a Wishbone signature of amaranth-soc with the feature ``err``."""

    def __init__(self, *, addr_width, data_width, granularity, features):
        assert set(features) == {"err"}
        super().__init__({
            "adr": Out(addr_width), "dat_w": Out(data_width), "dat_r": In(data_width),
            "sel": Out(data_width // granularity), "cyc": Out(1), "stb": Out(1), "we": Out(1),
            "ack": In(1), "err": In(1),
        })


class MemoryMap:
    """Records its arguments and its resources."""

    def __init__(self, *, addr_width, data_width):
        self.addr_width, self.data_width, self.resources = addr_width, data_width, []

    def add_resource(self, resource, *, name, size):
        self.resources.append((resource, name, size))


class Decoder(wiring.Component):
    """Selects buses by their addresses, as the decoder of amaranth-soc."""

    def __init__(self, **parameters):
        self._buses = []
        super().__init__({"bus": In(Signature(**parameters))})

    def add(self, bus, *, name, addr):
        assert addr % (1 << bus.memory_map.addr_width) == 0
        self._buses.append((addr // 4 >> len(bus.adr), bus))

    def elaborate(self, platform):
        m = Module()
        for window, bus in self._buses:
            selected = self.bus.adr >> len(bus.adr) == window
            m.d.comb += [
                *(getattr(bus, name).eq(getattr(self.bus, name))
                  for name in ("adr", "dat_w", "sel", "stb", "we")),
                bus.cyc.eq(self.bus.cyc & selected),
            ]
            with m.If(selected):
                m.d.comb += [
                    getattr(self.bus, name).eq(getattr(bus, name))
                    for name in ("dat_r", "ack", "err")
                ]
        return m


def install(monkeypatch):
    """Make ``amaranth_soc`` importable for a test: the checkout, else the stand-in."""
    if CHECKOUT:
        monkeypatch.syspath_prepend(CHECKOUT)
        return
    package, memory = types.ModuleType("amaranth_soc"), types.ModuleType("amaranth_soc.memory")
    package.wishbone = types.SimpleNamespace(Signature=Signature, Decoder=Decoder)
    memory.MemoryMap = MemoryMap
    monkeypatch.setitem(sys.modules, "amaranth_soc", package)
    monkeypatch.setitem(sys.modules, "amaranth_soc.memory", memory)
