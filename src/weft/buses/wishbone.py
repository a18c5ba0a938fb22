"""Bus ``wishbone``: Wishbone B4 with FIFO ports, in classic or pipelined cycles."""

from weft.buses.bus import Bus, DataPath, Diagram, Interface

__all__ = ["WishboneBus"]

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
