"""The register slave of a Weft core in LiteX: AXI4-Lite."""

from litex.soc.interconnect import axi
from migen import Constant


def connect(module, facts):
    """Give ``module`` the interface ``bus``; the pins of the core that it connects."""
    module.bus = bus = axi.AXILiteInterface(data_width=32, address_width=32)
    pins = {"i_s_axil_awaddr": bus.aw.addr[:12], "i_s_axil_araddr": bus.ar.addr[:12]}
    pins |= {"i_s_axil_awprot": Constant(0, 3), "i_s_axil_arprot": Constant(0, 3)}
    for channel, fields in {"aw": (), "w": ("data", "strb"), "ar": ()}.items():
        pins |= _channel(channel, getattr(bus, channel), fields, "i", "o")
    for channel, fields in {"b": ("resp",), "r": ("data", "resp")}.items():
        pins |= _channel(channel, getattr(bus, channel), fields, "o", "i")
    return pins


def _channel(name, channel, fields, data, ready):
    """The pins of one channel; ``data`` and ``ready`` are directions, "i" or "o"."""
    prefix = f"s_axil_{name}"
    pins = {f"{data}_{prefix}valid": channel.valid, f"{ready}_{prefix}ready": channel.ready}
    return pins | {f"{data}_{prefix}{field}": getattr(channel, field) for field in fields}
