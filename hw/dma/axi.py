"""The AXI4 port of a master with one ID: its channels, and the fields with fixed values."""

from amaranth.hdl import Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["BURST", "FIXED", "Axi4", "AxiResponse", "connect_master", "master_pins"]


# Beats of the longest burst. No burst crosses a multiple of BURST beats, so none crosses 4 KiB.
BURST = 16

# Fields of AW and AR with fixed values (``size`` is fixed too, but depends on the width): INCR;
# modifiable and bufferable.
FIXED = {"id": 0, "burst": 0b01, "lock": 0, "cache": 0b0011, "prot": 0b000, "qos": 0}


class AxiResponse(enum.Enum, shape=2):
    """BRESP and RRESP."""

    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


class Axi4(wiring.Signature):
    """The five channels of a master that reads and writes whole beats.

    The top level drives the other fields of ``aw`` and ``ar`` with `FIXED` and ``size``, and
    ignores the IDs of responses.

    Parameters
    ----------
    data_bytes : int
        Bytes of a beat: a power of two.

    Attributes
    ----------
    size : int
        Value of AWSIZE and ARSIZE.
    aw, ar : Out, streams of ``addr`` (32 bits) and ``len`` (8 bits)
        Address of a burst; ``len`` is the number of its beats less one.
    w : Out, stream of ``data``, ``strb`` and ``last``
    b : In, stream of ``resp``
    r : In, stream of ``data``, ``resp`` and ``last``

    Source: ARM IHI 0022, AMBA AXI and ACE Protocol Specification: A3.
    """

    def __init__(self, *, data_bytes):
        self.size = ceil_log2(data_bytes)
        address = data.StructLayout({"addr": 32, "len": 8})
        super().__init__({
            "aw": Out(stream.Signature(address)),
            "w": Out(stream.Signature(data.StructLayout({
                "data": 8 * data_bytes, "strb": data_bytes, "last": 1,
            }))),
            "b": In(stream.Signature(data.StructLayout({"resp": AxiResponse}))),
            "ar": Out(stream.Signature(address)),
            "r": In(stream.Signature(data.StructLayout({
                "data": 8 * data_bytes, "resp": AxiResponse, "last": 1,
            }))),
        })


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
