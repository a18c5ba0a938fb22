"""A Weft core as a LiteX module.

    soc.submodules.weft = weft = Weft(platform)
    soc.bus.add_slave("weft", weft.bus, SoCRegion(origin=0x3000_0000, size=0x1000, cached=False))

``weft.bus`` is the slave port of the registers, ``weft.irq`` the interrupt. With bus stream,
``weft.sink`` takes commands and ``weft.source`` gives results. With bus dma, ``weft.master`` is an
AXI4 master for ``soc.dma_bus`` or ``soc.bus``. A network core with a program memory has it,
too: its best place is a port of LiteDRAM.
"""

import json
import tomllib
from pathlib import Path

import weft_pins
from litex.soc.interconnect import axi, stream
from migen import ClockSignal, Instance, Module, ResetSignal, Signal

KIT = Path(__file__).resolve().parent.parent
FACTS = json.loads((KIT / "kit.json").read_text(encoding="utf-8"))
CONFIG = tomllib.loads((KIT / "config.toml").read_text(encoding="utf-8"))


class Weft(Module):
    """The core of this kit.

    Parameters
    ----------
    platform : litex.build.generic_platform.GenericPlatform
        The core's Verilog is added to its sources.
    clock : str
        Clock domain of the bus.
    core_clock : str
        Clock domain of the core, if it has its own clock.
    """

    def __init__(self, platform, clock="sys", core_clock="sys"):
        platform.add_source(str(KIT / f"{FACTS['name']}.v"))
        self.irq, reset = Signal(), ResetSignal(clock, allow_reset_less=True)
        pins = {
            "o_irq": self.irq, f"i_{FACTS['clock']}": ClockSignal(clock),
            f"i_{FACTS['reset']}": reset if FACTS["reset_active"] else ~reset,
            **weft_pins.connect(self, FACTS),
        }
        if FACTS["clocks"] == 2:
            pins["i_core_clk"] = ClockSignal(core_clock)
        if FACTS["data_path"] == "stream":
            pins |= self._streams()
        if beat := _beat_bytes():
            pins |= self._master(clock, beat)
        self.specials += Instance(FACTS["name"], **pins)

    def _streams(self):
        self.sink = sink = stream.Endpoint([("data", 8 * CONFIG["bytes_in"])])
        self.source = source = stream.Endpoint(
            [("data", 8 * CONFIG["bytes_out"]), ("tag", 16), ("status", 8)]
        )
        return {
            "i_s_axis_tvalid": sink.valid, "o_s_axis_tready": sink.ready,
            "i_s_axis_tdata": sink.data, "o_m_axis_tvalid": source.valid,
            "i_m_axis_tready": source.ready, "o_m_axis_tdata": source.data,
            "o_m_axis_tlast": source.last, "o_m_axis_tid": source.tag,
            "o_m_axis_tuser": source.status,
        }

    def _master(self, clock, beat):
        self.master = bus = axi.AXIInterface(
            data_width=8 * beat, address_width=32, id_width=1, clock_domain=clock
        )
        address = ("addr", "len", "size", "burst", "lock", "cache", "prot", "qos", "id")
        pins, outputs = {}, {"aw": address, "ar": address, "w": ("data", "strb", "last")}
        for channel, fields in outputs.items():
            pins |= _channel(f"m_axi_{channel}", getattr(bus, channel), fields, "o", "i")
        for channel, fields in {"b": ("resp", "id"), "r": ("data", "resp", "last", "id")}.items():
            pins |= _channel(f"m_axi_{channel}", getattr(bus, channel), fields, "i", "o")
        return pins


def _beat_bytes():
    """Bytes of a beat of the AXI4 master; 0 if the core has none."""
    if FACTS["data_path"] == "dma":
        return CONFIG["bytes_in"]
    config = CONFIG.get("network_core", {"program_words": 0})
    return config["read_vectors"] * CONFIG["depth"] if config["program_words"] else 0


def _channel(prefix, channel, fields, data, ready):
    """The pins of one channel; ``data`` and ``ready`` are directions, "i" or "o"."""
    pins = {f"{data}_{prefix}valid": channel.valid, f"{ready}_{prefix}ready": channel.ready}
    return pins | {f"{data}_{prefix}{field}": getattr(channel, field) for field in fields}
