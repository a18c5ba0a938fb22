"""The register map in SystemRDL, generated from `weft.register_map`."""

from weft.buses.bus import WORD_BYTES
from weft.ip import Ip
from weft.network_core.ip import NetworkIp
from weft.register_map import constants, fifo_ports, registers
from weft.register_types import Field, FifoPort, Register

__all__ = ["systemrdl"]

# SystemRDL properties of a field by its access, and whether the field has a reset value.
_ACCESS = {
    "ro": ("sw = r; hw = w;", False),
    "rw": ("sw = rw; hw = r;", True),
    "wo": ("sw = w; hw = r;", True),
    "pulse": ("sw = w; hw = r; singlepulse;", True),
    "w1c": ("sw = rw; hw = r; woclr; hwset;", True),
}


def systemrdl(ip: Ip | NetworkIp) -> str:
    """The SystemRDL text: one address map with all registers.

    The address map is named after the prefix, which becomes the name of the C struct and of the C
    macros. Constant registers, which describe the core, have their values.
    """
    values = constants(ip)
    parts = [_register(r, values.get(r.name)) for r in registers(ip)]
    parts += [_window(w) for w in fifo_ports(ip)]
    body = "\n".join(parts)
    return (
        f"// Register space of {ip.name}.\n"
        f"addrmap {ip.prefix} {{\n"
        f"    name = \"{ip.name}\";\n"
        f"    desc = \"{_quoted(_DESCRIPTION)}\";\n"
        "    default regwidth = 32;\n"
        "    default accesswidth = 32;\n\n"
        f"{body}"
        "};\n"
    )


_DESCRIPTION = (
    "4 KiB of 32-bit words. An access ends in a bus error if its address is not listed, if it"
    " writes less than a word or a read-only register, or if it reads a write-only register. Such"
    " an access has no effect and sets a bit of irq_status."
)


def _register(register: Register, constant: int | None) -> str:
    fields = "\n".join(_field(f, constant) for f in register.fields)
    return (
        "    reg {\n"
        f"        name = \"{register.name}\";\n"
        f"        desc = \"{_quoted(register.text)}\";\n"
        f"{fields}\n"
        f"    }} {register.name} @ 0x{register.address:03x};\n"
    )


def _field(field: Field, constant: int | None) -> str:
    properties, has_reset = _ACCESS[field.access]
    value = ""
    if constant is not None:
        properties, value = "sw = r; hw = na;", f" = 0x{constant:x}"
    elif has_reset:
        value = f" = 0x{field.reset:x}" if field.reset else " = 0"
    span = f"[{field.low + field.width - 1}:{field.low}]"
    text = f'desc = "{_quoted(field.text)}"; {properties}'
    return f"        field {{ {text} }} {field.name}{span}{value};"


def _window(window: FifoPort) -> str:
    """An array of identical registers."""
    properties = "sw = w; hw = r;" if window.access == "wo" else "sw = r; hw = w;"
    return (
        "    reg {\n"
        f"        name = \"{window.name}\";\n"
        f"        desc = \"{_quoted(window.text)}; every word of the range is the same port\";\n"
        f"        field {{ desc = \"{_quoted(window.text)}\"; {properties} }} word[31:0];\n"
        f"    }} {window.name}[{window.size // WORD_BYTES}] @ 0x{window.address:03x} += 4;\n"
    )


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
