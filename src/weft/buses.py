"""The buses of an IP core, by name: pins, data path, timing diagrams and use of each."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weft.config import Config
from weft.registry import Registry

__all__ = [
    "BUSES", "MASTER_PORTS", "WORD_BYTES", "WRITE", "ApbBus", "AxiLiteBus", "Bus", "DataPath",
    "Diagram", "DmaBus", "Interface", "StreamBus", "WishboneBus", "channel_ports",
]


WORD_BYTES = 4  # bytes of a register or FIFO port


class DataPath(enum.Enum):
    """The way of commands and results; the value is in the names of its files in a kit."""

    FIFO_PORTS = "fifo"  # through CMD_FIFO and RESULT_FIFO, in the register space
    STREAMS = "stream"  # through AXI4-Stream
    DMA = "dma"  # from memory and to memory, by a bus master


@dataclass(frozen=True)
class Interface:
    """The ports whose names start with ``prefix``.

    Attributes
    ----------
    prefix, text : str
        ``text`` describes the interface.
    ports : Mapping
        The description of each port, by its name without the prefix.
    """

    prefix: str
    text: str
    ports: Mapping[str, str]


@dataclass(frozen=True)
class Diagram:
    """A timing diagram: a title, the name of the clock, and pairs of a port and its levels.

    `weft.kit.sheet.draw` describes the levels.
    """

    title: str
    clock: str
    rows: tuple[tuple[str, str], ...]


class Bus:
    """A bus of an IP core; a subclass defines one, and `weft.buses.BUSES` has an object of each.

    The hardware of its register slave is in `weft.hw.bus.slaves`.

    Attributes
    ----------
    name, text : str
        The value of ``--bus``; one line about the bus.
    register_slave : str
        Protocol of the registers. It names the files of `weft.kit.files` for it:
        ``weft_master_<register_slave>.py`` and ``weft_pins_<register_slave>.py``.
    data_path : DataPath
    options : tuple of str
        The fields of `weft.ip.OPTIONS` that a core with this bus may set.
    clock, reset : str
        Ports of the clock and the reset of the bus.
    reset_active : int
        Level of ``reset`` during a reset.
    bench_package : str
        The requirement of the kit's bench for its bus models, for pip.
    use : str
        Sentences of the data sheet: how software uses the core. ``{header}`` is the driver's.
    interfaces : tuple of Interface
    """

    name: str
    text: str
    register_slave: str
    data_path: DataPath
    options: tuple[str, ...] = ()
    clock: str
    reset: str
    reset_active: int
    bench_package: str
    use: str
    interfaces: tuple[Interface, ...]

    def problems(self, config: Config) -> Iterable[str]:
        """A line for each reason why a core with this bus can't have ``config``."""
        for field in ("bytes_in", "bytes_out"):
            if getattr(config, field) < WORD_BYTES:
                yield (
                    f"{field} must be at least {WORD_BYTES} with bus {self.name!r},"
                    f" not {getattr(config, field)}"
                )

    def diagrams(self, options: tuple[str, ...]) -> tuple[Diagram, ...]:
        """The timing diagrams of a core that sets ``options``."""
        raise NotImplementedError


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


_CLASSIC = Diagram("A write, then a read that ends in an error, in classic cycles", "wb_clk_i", (
    ("wb_cyc_i", "0111011110"), ("wb_stb_i", "0111011110"), ("wb_we_i", "x111x0000x"),
    ("wb_adr_i", "xAAAxBBBBx"), ("wb_dat_i", "xDDDxxxxxx"), ("wb_ack_o", "0001000000"),
    ("wb_err_o", "0000000010"),
))
_PIPELINED = Diagram("Two reads in a pipelined cycle; the second is stalled", "wb_clk_i", (
    ("wb_cyc_i", "0111111100"), ("wb_stb_i", "0111000000"), ("wb_we_i", "x000xxxxxx"),
    ("wb_adr_i", "xABBxxxxxx"), ("wb_stall_o", "0010000000"), ("wb_dat_o", "xxxxxCDxxx"),
    ("wb_ack_o", "0000011000"),
))


class WishboneBus(Bus):
    """Wishbone B4 with FIFO ports.

    Source: OpenCores, WISHBONE B4.
    """

    name = "wishbone"
    text = "Wishbone B4 slave with registers, and FIFO ports for commands and results"
    register_slave = "wishbone"
    data_path = DataPath.FIFO_PORTS
    options = ("pipelined",)
    clock, reset, reset_active = "wb_clk_i", "wb_rst_i", 1
    bench_package = "cocotbext-wishbone==2.0.1"
    use = "Registers and FIFO ports are a Wishbone B4 slave of 4 KiB, with word addresses."
    interfaces = (
        Interface("wb_", "Wishbone B4 slave: the register space", {
            "clk_i": "clock", "rst_i": "reset, active high, synchronous to wb_clk_i",
            "cyc_i": "bus cycle active", "stb_i": "access strobe", "we_i": "write enable",
            "adr_i": "address, in 32-bit words", "sel_i": "byte enables", "dat_i": "write data",
            "dat_o": "read data", "ack_o": "access completed",
            "err_o": "access ended in an error",
            "stall_o": "hold the access: the slave is not ready",
        }),
    )

    def diagrams(self, options):
        """A write and a read, or two pipelined reads."""
        return (_PIPELINED if "pipelined" in options else _CLASSIC,)


BUSES: Registry[Bus] = Registry(
    "bus", AxiLiteBus(), WishboneBus(), ApbBus(), StreamBus(), DmaBus()
)
