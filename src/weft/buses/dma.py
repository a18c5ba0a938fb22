"""Bus ``dma``: an AXI4 master for operands and results in memory, AXI4-Lite for registers."""

from weft.buses.axi_lite import WRITE, AxiLiteBus, channel_ports
from weft.buses.bus import DataPath, Diagram, Interface

__all__ = ["MASTER_PORTS", "DmaBus"]

MASTER_PORTS = channel_ports({
    "last": "last beat of the burst", "id": "always 0", "len": "beats in the burst, minus 1",
    "size": "log2 of the bytes in a beat", "burst": "1: incrementing addresses",
    "lock": "always 0", "cache": "memory type", "qos": "always 0",
})

_BURST = Diagram("A read burst; no burst crosses a 4 KiB boundary", "aclk", (
    ("m_axi_araddr", "xAAxxxxx"), ("m_axi_arlen", "xNNxxxxx"), ("m_axi_arvalid", "01100000"),
    ("m_axi_arready", "00100000"), ("m_axi_rdata", "xxxxBCDx"), ("m_axi_rlast", "00000010"),
    ("m_axi_rvalid", "00001110"), ("m_axi_rready", "11111111"),
))


class DmaBus(AxiLiteBus):
    """An AXI4 master, and AXI4-Lite.

    Source: ARM IHI 0022, AMBA AXI Protocol Specification: AXI4.
    """

    name = "dma"
    text = "AXI4 master for operands and results in memory, AXI4-Lite slave with registers"
    data_path = DataPath.DMA
    options = ("window",)
    use = (
        "Operands and results are in memory, which the core accesses as an AXI4 master. Registers"
        " are an AXI4-Lite slave of 4 KiB. Software writes descriptors: a header for the core, an"
        " address, strides. The driver [{header}]({header}) does this in C."
    )
    interfaces = (
        *AxiLiteBus.interfaces,
        Interface("m_axi_", "AXI4 master: operands and results in memory", MASTER_PORTS),
    )

    def problems(self, config):
        """Words too narrow or of two widths, and a geometry that the DMA engine can't pack."""
        yield from super().problems(config)
        if config.bytes_in != config.bytes_out:
            yield (
                f"bytes_in and bytes_out must be equal with bus 'dma', not {config.bytes_in} and"
                f" {config.bytes_out}"
            )
        if config.depth & (config.depth - 1):
            yield f"depth must be a power of two with bus 'dma', not {config.depth}"
        if config.cols % config.lanes:
            yield (
                f"cols must be a multiple of lanes ({config.lanes}) with bus 'dma',"
                f" not {config.cols}"
            )

    def diagrams(self, options):
        """A burst, and a write of a register."""
        return _BURST, WRITE
