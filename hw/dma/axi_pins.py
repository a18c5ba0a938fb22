"""The pins of an AXI4 master, and their connection to an `Axi4` port."""

from amaranth.hdl import Value
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from weft.hw.dma.axi import FIXED

__all__ = ["connect_master", "master_pins"]

_CHANNELS = ("aw", Out), ("w", Out), ("b", In), ("ar", Out), ("r", In)


def master_pins(data_bytes):
    """The pins of a master whose data has ``data_bytes`` bytes: members by name, in order."""
    address = {
        "id": 1, "addr": 32, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3,
        "qos": 4,
    }
    response = {"id": 1, "resp": 2}
    payloads = {
        "aw": address, "w": {"data": 8 * data_bytes, "strb": data_bytes, "last": 1},
        "b": response, "ar": address, "r": {"id": 1, "data": 8 * data_bytes, "resp": 2, "last": 1},
    }
    found = {}
    for channel, flow in _CHANNELS:
        found |= {f"{channel}{name}": flow(width) for name, width in payloads[channel].items()}
        found[f"{channel}valid"] = flow(1)
        found[f"{channel}ready"] = In(1) if flow == Out else Out(1)
    return {f"m_axi_{name}": member for name, member in found.items()}


def connect_master(m, wrapper, axi, data_bytes):
    """Connect the port ``axi`` to the pins of a wrapper, and drive the constant pins."""
    for name, flow in _CHANNELS:
        inner = getattr(axi, name)
        valid, ready = (getattr(wrapper, f"m_axi_{name}{pin}") for pin in ("valid", "ready"))
        if flow == Out:
            m.d.comb += [valid.eq(inner.valid), inner.ready.eq(ready)]
        else:
            m.d.comb += [inner.valid.eq(valid), ready.eq(inner.ready)]
        for field in inner.payload.shape().members:
            pin, value = getattr(wrapper, f"m_axi_{name}{field}"), inner.payload[field]
            m.d.comb += pin.eq(value) if flow == Out else Value.cast(value).eq(pin)
        if name in ("aw", "ar"):
            m.d.comb += [
                getattr(wrapper, f"m_axi_{name}{field}").eq(value)
                for field, value in {**FIXED, "size": ceil_log2(data_bytes)}.items()
            ]
