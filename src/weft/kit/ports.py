"""The ports of an IP core: from its signature, each with what it is for."""

from dataclasses import dataclass

from amaranth.lib.wiring import In

__all__ = ["Interface", "Port", "interfaces", "ports"]

# What a port's name says after its interface's prefix. AXI's channels share what they hold.
_AXI = {
    "addr": "address, of bytes", "prot": "protection type", "valid": "offered", "ready": "taken",
    "data": "data", "strb": "bytes that count", "resp": "response: 0 right, 2 an error",
    "last": "the last word of a burst", "id": "always 0", "len": "beats of the burst, less 1",
    "size": "bytes of a beat, as a power of two", "burst": "1: ascending addresses",
    "lock": "always 0", "cache": "memory type", "qos": "always 0",
}
_CHANNELS = {"aw": "write address", "w": "write data", "b": "write response",
             "ar": "read address", "r": "read data"}
_STREAM = {
    "tvalid": "a word is offered", "tready": "a word is taken", "tdata": "the word, low byte first",
    "tlast": "the last word of a job", "tid": "the job's tag",
    "tuser": "with tlast, how the job ended: 0 right, 1 aborted, 2 rejected",
}
_WISHBONE = {
    "clk_i": "clock", "rst_i": "reset, active high, synchronous to wb_clk_i",
    "cyc_i": "a cycle is under way", "stb_i": "an access is asked for", "we_i": "it is a write",
    "adr_i": "address, of a 32-bit word", "sel_i": "bytes that count", "dat_i": "written",
    "dat_o": "read", "ack_o": "the access is done", "err_o": "the access is refused",
    "stall_o": "the access has to be held",
}
_ALONE = {
    "aclk": "clock of all that has no other", "aresetn": "reset, active low, synchronous to aclk",
    "irq": "interrupt, a level: high while an enabled bit of irq_status is set",
    "core_clk": "clock of the core",
}


@dataclass(frozen=True)
class Port:
    """A port of the top module; ``out`` says its direction."""

    name: str
    width: int
    out: bool
    text: str


@dataclass(frozen=True)
class Interface:
    """Ports that belong together, by their prefix; the prefix of the last ones is empty."""

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
    """All ports of a component of flat names, in its own order.

    Raises ValueError for a port whose name says nothing.
    """
    return [
        Port(str(path[0]), len(value), member.flow != In, _text(str(path[0])))
        for path, member, value in component.signature.flatten(component)
    ]


def _text(name):
    if name in _ALONE:
        return _ALONE[name]
    prefix = next(i.prefix for i in interfaces if name.startswith(i.prefix))
    rest = name.removeprefix(prefix)
    if prefix == "wb_" and rest in _WISHBONE:
        return _WISHBONE[rest]
    if prefix.endswith("axis_") and rest in _STREAM:
        return _STREAM[rest]
    if prefix in ("s_axil_", "m_axi_"):
        for short, channel in _CHANNELS.items():
            if rest.startswith(short) and rest.removeprefix(short) in _AXI:
                return f"{channel}: {_AXI[rest.removeprefix(short)]}"
    raise ValueError(f"port must have a name that is known, not {name!r}")
