"""The AXI4 port of a master with one ID: its channels, and the fields with fixed values."""

from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["BURST", "FIXED", "Axi4", "AxiResponse"]

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
