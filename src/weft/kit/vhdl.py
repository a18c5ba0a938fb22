"""A VHDL package with the component declaration of the core."""

from weft.kit.ports import Port

__all__ = ["package"]


def package(name: str, ports: list[Port], *, head: list[str]) -> str:
    """A file with the package ``<name>_component``; ports are std_logic or std_logic_vector."""
    longest = max(len(port.name) for port in ports)
    lines = []
    for port in ports:
        kind = "std_logic" if port.width == 1 else f"std_logic_vector({port.width - 1} downto 0)"
        end = "" if port is ports[-1] else ";"
        lines.append(f"      {port.name:{longest}} : {'out' if port.out else 'in '} {kind}{end}")
    return "\n".join([
        *(f"-- {line}".rstrip() for line in head), "",
        "library ieee;", "use ieee.std_logic_1164.all;", "",
        f"package {name}_component is", "",
        f"  component {name} is", "    port (", *lines, "    );", "  end component;", "",
        f"end package {name}_component;", "",
    ])
