"""Bus ``stream``: AXI4-Stream for commands and results, AXI4-Lite for registers."""

from weft.buses.axi_lite import WRITE, AxiLiteBus
from weft.buses.bus import DataPath, Diagram, Interface

__all__ = ["StreamBus"]

_PORTS = {
    "tvalid": "valid", "tready": "ready", "tdata": "data, lowest byte first",
    "tlast": "last word of a job", "tid": "tag of the job",
    "tuser": "status of the job, valid with tlast: 0 ok, 1 aborted, 2 rejected",
}
_PACKET = Diagram("A packet of results; tid is the job's tag, tuser is valid with tlast", "aclk", (
    ("m_axis_tdata", "xABBCxxx"), ("m_axis_tid", "xTTTTxxx"), ("m_axis_tlast", "00001000"),
    ("m_axis_tuser", "xxxxUxxx"), ("m_axis_tvalid", "01111000"), ("m_axis_tready", "01011000"),
))


class StreamBus(AxiLiteBus):
    """Two AXI4-Streams, and AXI4-Lite.

    Source: ARM IHI 0051, AMBA AXI-Stream Protocol Specification.
    """

    name = "stream"
    text = "AXI4-Stream for commands and results, AXI4-Lite slave with registers"
    data_path = DataPath.STREAMS
    use = (
        "Commands enter through `s_axis`; results leave through `m_axis`, one packet for each job."
        " Registers are an AXI4-Lite slave of 4 KiB. The driver [{header}]({header}) packs commands"
        " and unpacks results in C; your own DMA moves them."
    )
    interfaces = (
        *AxiLiteBus.interfaces,
        Interface("s_axis_", "AXI4-Stream slave: commands", _PORTS),
        Interface("m_axis_", "AXI4-Stream master: results", _PORTS),
    )

    def problems(self, config):
        """None: the streams may have any width."""
        return ()

    def diagrams(self, options):
        """A packet, and a write of a register."""
        return _PACKET, WRITE
