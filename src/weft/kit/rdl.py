"""The register space in SystemRDL, from its one description."""

from weft.ip import WORD_BYTES, Ip
from weft.register_map import Field, FifoPort, Register, fifo_ports, registers
from weft.registers import REGISTERS, describe

__all__ = ["systemrdl"]

# What a field does, by its access; and whether it has a value after a reset.
_ACCESS = {
    "ro": ("sw = r; hw = w;", False),
    "rw": ("sw = rw; hw = r;", True),
    "pulse": ("sw = w; hw = r; singlepulse;", True),
    "w1c": ("sw = rw; hw = r; woclr; hwset;", True),
}


def systemrdl(ip: Ip) -> str:
    """The text of the description: an address map, one register after the other.

    The address map has the name of the prefix: C takes it for the struct and the macros.
    What never changes, the core's description of itself, stands there with its values.
    """
    constants = dict(zip(REGISTERS, describe(ip.config), strict=False))
    parts = [_register(r, constants.get(r.name)) for r in registers(ip)]
    parts += [_window(w) for w in fifo_ports(ip)]
    body = "\n".join(parts)
    return (
        f"// Register space of {ip.name}.\n"
        f"addrmap {ip.prefix} {{\n"
        f"    name = \"{ip.name}\";\n"
        f"    desc = \"{_quoted(_STORY)}\";\n"
        "    default regwidth = 32;\n"
        "    default accesswidth = 32;\n\n"
        f"{body}"
        "};\n"
    )


_STORY = (
    "4 KiB of 32-bit words. An access to an address that is not here, a write of less than a word,"
    " a write to what is read-only or a read of what is write-only is refused: it is answered by"
    " the bus's error, has no effect, and is noted in irq_status."
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
    does, cleared = _ACCESS[field.access]
    value = ""
    if constant is not None:
        does, value = "sw = r; hw = na;", f" = 0x{constant:x}"
    elif cleared:
        value = f" = 0x{field.reset:x}" if field.reset else " = 0"
    span = f"[{field.low + field.width - 1}:{field.low}]"
    text = f'desc = "{_quoted(field.text)}"; {does}'
    return f"        field {{ {text} }} {field.name}{span}{value};"


def _window(window: FifoPort) -> str:
    """An array of registers, all of them alike."""
    does = "sw = w; hw = r;" if window.access == "wo" else "sw = r; hw = w;"
    return (
        "    reg {\n"
        f"        name = \"{window.name}\";\n"
        f"        desc = \"{_quoted(window.text)}; all words are one\";\n"
        f"        field {{ desc = \"{_quoted(window.text)}\"; {does} }} word[31:0];\n"
        f"    }} {window.name}[{window.size // WORD_BYTES}] @ 0x{window.address:03x} += 4;\n"
    )


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
