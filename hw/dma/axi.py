"""The AXI4 port of a master that has one ID: the channels, and what of them never changes."""

from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["BURST", "FIXED", "Axi4", "AxiResponse"]

BURST = 16  # beats of a burst at most; none crosses a multiple of as many, so none crosses 4 KiB

# What AW and AR say beside ``addr`` and ``len``, ``size`` aside: INCR; modifiable and bufferable.
FIXED = {"id": 0, "burst": 0b01, "lock": 0, "cache": 0b0011, "prot": 0b000, "qos": 0}


class AxiResponse(enum.Enum, shape=2):
    """BRESP and RRESP."""

    OKAY = 0
    EXOKAY = 1
    SLVERR = 2
    DECERR = 3


class Axi4(wiring.Signature):
    """The five channels, ``data_bytes`` bytes wide, of a master that reads and writes whole beats.

    A top adds `FIXED`, and `size`, to ``aw`` and ``ar``, and leaves out the IDs that answers have.

    Source: ARM IHI 0022, AMBA AXI and ACE Protocol Specification: A3.
    """

    def __init__(self, *, data_bytes):
        self.size = ceil_log2(data_bytes)  # AxSIZE
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
