"""The ports of an IP core, from its signature, with their descriptions."""

from dataclasses import dataclass

from amaranth.lib.wiring import In

__all__ = ["Interface", "Port", "interfaces", "ports"]

# Descriptions of the ports, by their names after the prefix of the interface. All AXI channels
# share one table.
_AXI = {
    "addr": "byte address", "prot": "protection type", "valid": "valid", "ready": "ready",
    "data": "data", "strb": "byte enables", "resp": "response: 0 OKAY, 2 SLVERR",
    "last": "last beat of the burst", "id": "always 0", "len": "beats in the burst, minus 1",
    "size": "log2 of the bytes in a beat", "burst": "1: incrementing addresses",
    "lock": "always 0", "cache": "memory type", "qos": "always 0",
}
_CHANNELS = {"aw": "write address", "w": "write data", "b": "write response",
             "ar": "read address", "r": "read data"}
_STREAM = {
    "tvalid": "valid", "tready": "ready", "tdata": "data, lowest byte first",
    "tlast": "last word of a job", "tid": "tag of the job",
    "tuser": "status of the job, valid with tlast: 0 ok, 1 aborted, 2 rejected",
}
_WISHBONE = {
    "clk_i": "clock", "rst_i": "reset, active high, synchronous to wb_clk_i",
    "cyc_i": "bus cycle active", "stb_i": "access strobe", "we_i": "write enable",
    "adr_i": "address, in 32-bit words", "sel_i": "byte enables", "dat_i": "write data",
    "dat_o": "read data", "ack_o": "access completed", "err_o": "access ended in an error",
    "stall_o": "hold the access: the slave is not ready",
}
_OTHER = {
    "aclk": "clock of all ports, and of the core if it has no core_clk",
    "aresetn": "reset, active low, synchronous to aclk",
    "irq": "interrupt, level: high while an enabled bit of irq_status is set",
    "core_clk": "clock of the core",
}


@dataclass(frozen=True)
class Port:
    """A port of the top module; ``out`` is true for an output, ``text`` describes the port."""

    name: str
    width: int
    out: bool
    text: str


@dataclass(frozen=True)
class Interface:
    """An interface: the ports whose names start with ``prefix``. The last one's is empty."""

    prefix: str
    text: str


interfaces = (
    Interface("s_axil_", "AXI4-Lite slave: the register space"),
    Interface("wb_", "Wishbone B4 slave: the register space"),
    Interface("s_axis_", "AXI4-Stream slave: commands"),
    Interface("m_axis_", "AXI4-Stream master: results"),
    Interface("m_axi_", "AXI4 master: operands and results in memory"),
    Interface("", "clocks, reset, interrupt"),
)


def ports(component) -> list[Port]:
    """All ports of a component whose signature is flat, in the signature's order.

    Raises ValueError for a port whose name has no description.
    """
    return [
        Port(str(path[0]), len(value), member.flow != In, _text(str(path[0])))
        for path, member, value in component.signature.flatten(component)
    ]


def _text(name):
    if name in _OTHER:
        return _OTHER[name]
    prefix = next(i.prefix for i in interfaces if name.startswith(i.prefix))
    signal = name.removeprefix(prefix)
    if prefix == "wb_" and signal in _WISHBONE:
        return _WISHBONE[signal]
    if prefix.endswith("axis_") and signal in _STREAM:
        return _STREAM[signal]
    if prefix in ("s_axil_", "m_axi_"):
        for channel, text in _CHANNELS.items():
            if signal.startswith(channel) and signal.removeprefix(channel) in _AXI:
                return f"{text}: {_AXI[signal.removeprefix(channel)]}"
    raise ValueError(f"port must have a known name, not {name!r}")
