"""The Verilog instantiation template: an instance of the core, with a comment on each port."""

from weft.kit.ports import Port
from weft.kit.verilog import commented

__all__ = ["template"]


def template(name: str, ports: list[Port], *, head: list[str]) -> str:
    """A wire for each port, and an instance of the core connected to them."""
    kinds = ["wire" if p.width == 1 else f"wire [{p.width - 1}:0]" for p in ports]
    kind_width, name_width = max(map(len, kinds)), max(len(p.name) for p in ports)
    wires = [f"{kind:{kind_width}} {p.name};" for kind, p in zip(kinds, ports, strict=True)]
    pins = []
    for p in ports:
        pin = f".{p.name}({p.name})" + ("" if p is ports[-1] else ",")
        pins.append(f"    {pin:{2 * name_width + 4}} // {'out' if p.out else 'in'}: {p.text}")
    return commented(head, "//") + "\n".join([*wires, "", f"{name} core (", *pins, ");", ""])
