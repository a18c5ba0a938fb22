"""Bus ``axi``: AXI4-Lite for registers and FIFO ports."""

from weft.buses.bus import Bus, DataPath, Diagram, Interface

__all__ = ["WRITE", "AxiLiteBus", "channel_ports"]

_CHANNELS = {"aw": "write address", "w": "write data", "b": "write response",
             "ar": "read address", "r": "read data"}
_FIELDS = {
    "addr": "byte address", "prot": "protection type", "valid": "valid", "ready": "ready",
    "data": "data", "strb": "byte enables", "resp": "response: 0 OKAY, 2 SLVERR",
}
WRITE = Diagram("AXI4-Lite write; address and data may arrive in either order", "aclk", (
    ("s_axil_awaddr", "xAAxxxxx"), ("s_axil_awvalid", "01100000"), ("s_axil_awready", "00100000"),
    ("s_axil_wdata", "xDDxxxxx"), ("s_axil_wvalid", "01100000"), ("s_axil_wready", "00100000"),
    ("s_axil_bresp", "xxxxxRRx"), ("s_axil_bvalid", "00000110"), ("s_axil_bready", "00000010"),
))
_READ = Diagram(
    "AXI4-Lite read; about 30 cycles for the core's own registers, fewer for others", "aclk", (
        ("s_axil_araddr", "xAAxxxxx"), ("s_axil_arvalid", "01100000"),
        ("s_axil_arready", "00100000"), ("s_axil_rdata", "xxxxxDDx"),
        ("s_axil_rvalid", "00000110"), ("s_axil_rready", "00000010"),
    ),
)


def channel_ports(fields: dict[str, str]) -> dict[str, str]:
    """Descriptions of the ports of all five AXI channels, from the descriptions of the fields."""
    return {
        channel + name: f"{text}: {field}"
        for channel, text in _CHANNELS.items() for name, field in (_FIELDS | fields).items()
    }


class AxiLiteBus(Bus):
    """AXI4-Lite with FIFO ports; and the base class of buses whose registers are AXI4-Lite.

    Source: ARM IHI 0022, AMBA AXI Protocol Specification: AXI4-Lite.
    """

    name = "axi"
    text = "AXI4-Lite slave with registers, and FIFO ports for commands and results"
    register_slave = "axi_lite"
    data_path = DataPath.FIFO_PORTS
    clock, reset, reset_active = "aclk", "aresetn", 0
    bench_package = "cocotbext-axi==0.1.28"
    use = "Registers and FIFO ports are an AXI4-Lite slave of 4 KiB."
    interfaces: tuple[Interface, ...] = (
        Interface("s_axil_", "AXI4-Lite slave: the register space", channel_ports({})),
    )

    def diagrams(self, options):
        """A write and a read."""
        return WRITE, _READ
