"""Wrong hardware for the tests of benches: Verilog with another value at one output."""

import re

__all__ = ["with_output"]


def with_output(verilog: str, top: str, port: str, value: str) -> str:
    """``verilog`` in a module ``top`` whose output ``port`` is replaced.

    Parameters
    ----------
    verilog : str
        Contains the module ``top`` as Yosys writes it.
    port : str
        Name of the output.
    value : str
        Verilog expression of the ports; ``{}`` in it is the original output.
    """
    start = verilog.index(f"module {top}(")
    body = verilog[start : verilog.index("endmodule", start)]
    ports = re.findall(r"^  (input|output) (\[\d+:0\] )?(\w+);", body, re.MULTILINE)
    original = f"original_{port}"
    pins = [f".{name}({original if name == port else name})" for _, _, name in ports]
    [width] = [width for way, width, name in ports if (way, name) == ("output", port)]
    return "\n".join([
        f"module {top}({', '.join(' '.join(declared) for declared in ports)});",
        f"wire {width}{original};",
        f"original original({', '.join(pins)});",
        f"assign {port} = {value.format(original)};",
        "endmodule",
        verilog.replace(f"module {top}(", "module original(", 1),
    ])
