"""Bus ``apb``: AMBA APB3 for registers and FIFO ports."""

from weft.buses.bus import Bus, DataPath, Diagram, Interface

__all__ = ["ApbBus"]

_TRANSFERS = Diagram("A write, then a read with a wait state that ends in an error", "pclk", (
    ("paddr", "xAAxBBBx"), ("psel", "01101110"), ("penable", "00100110"), ("pwrite", "x11x000x"),
    ("pwdata", "xDDxxxxx"), ("prdata", "xxxxxxDx"), ("pready", "00100010"),
    ("pslverr", "00000010"),
))


class ApbBus(Bus):
    """AMBA APB3 with FIFO ports.

    Source: ARM IHI 0024, AMBA APB Protocol Specification: APB3.
    """

    name = "apb"
    text = "AMBA APB3 slave with registers, and FIFO ports for commands and results"
    register_slave = "apb"
    data_path = DataPath.FIFO_PORTS
    clock, reset, reset_active = "pclk", "presetn", 0
    bench_package = "cocotbext-apb==1.1.0"
    use = "Registers and FIFO ports are an AMBA APB3 slave of 4 KiB."
    interfaces = (
        Interface("p", "AMBA APB3 slave: the register space", {
            "clk": "clock", "resetn": "reset, active low, synchronous to pclk",
            "addr": "byte address", "sel": "the slave is selected",
            "enable": "access phase of the transfer", "write": "1: write, 0: read",
            "wdata": "write data", "rdata": "read data", "ready": "last cycle of the transfer",
            "slverr": "transfer ended in an error",
        }),
    )

    def diagrams(self, options):
        """A write and a read."""
        return (_TRANSFERS,)
