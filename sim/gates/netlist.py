"""Translation of a Yosys or nextpnr netlist to Verilog, with simulation models of its cells."""

import json
import random
import re
from functools import cache
from pathlib import Path

from weft.sim.primitives import ECP5_MODELS, GOWIN_MODELS, ICE40_MODELS

__all__ = ["FAMILIES", "UnsupportedCell", "verilog"]

_HERE = Path(__file__).parent
# The files with the cell models of each family.
FAMILIES = {
    "ice40": (ICE40_MODELS, *sorted(_HERE.glob("ice40_*.v"))),
    "ecp5": (ECP5_MODELS, *sorted(_HERE.glob("ecp5_*.v"))),
    "gowin": (GOWIN_MODELS, *sorted(_HERE.glob("gowin_*.v"))),
}
# Values of unconnected inputs, by cell type and port. All others are 0.
_UNCONNECTED = {
    "ICESTORM_LC": {"CEN": "1"},
    "ICESTORM_RAM": {"RCLKE": "1", "WCLKE": "1"},
    "ICESTORM_DSP": {"CE": "1"},
    "TRELLIS_COMB": {**dict.fromkeys("ABCD", "1"), "FCI": "x", "WD": "x"},
    "TRELLIS_RAMW": dict.fromkeys(("A1", "B1", "C1", "D1"), "x"),
    "TRELLIS_FF": {"DI": "x", "M": "x", "CE": "x"},
    "CCU2C": {"CIN": "x"},
    "DCCA": {"CE": "1"},
}
_MODULE = re.compile(r"^module (\w+) (?:#\((.*?)\) )?\((.*?)\);", re.M | re.S)
_IGNORED_CELLS = {"$scopeinfo"}  # information about names, without hardware
# Parameters without effect in the models, which have no global reset and no delays in pins.
_IGNORED_PARAMETERS = {"GSR", "DATAMUX_MDDR", "DATAMUX_ODDR", "ASYNC_RESET_RELEASE"}


class UnsupportedCell(ValueError):
    """The netlist uses a cell, port or parameter without a model; the message names it."""


@cache
def _models(family):
    """By cell type: (names of the parameters, directions of the ports by name)."""
    models = {}
    for path in FAMILIES[family]:
        for name, parameters, ports in _MODULE.findall(path.read_text(encoding="utf-8")):
            directions, direction = {}, None
            for word in re.findall(r"\w+", re.sub(r"\[.*?\]", "", ports)):
                if word in ("input", "output", "inout"):
                    direction = word
                elif word != "wire":
                    directions[word] = direction
            names = set(re.findall(r"(\w+)\s+=", parameters)) if parameters else set()
            models[name] = names, directions
    return models


def verilog(path: Path, family: str, pins: dict[str, str], *, seed: int) -> str:
    """Verilog text: the models, and a module ``gates`` with the ports clk, rst, rx and tx.

    Undefined bits of the netlist (``x``) become random bits, because no result may depend on them.

    Parameters
    ----------
    path : Path
        The netlist, in the JSON that Yosys and nextpnr write.
    family : str
        A key of `FAMILIES`.
    pins : dict of str
        For each port of ``gates``, the name of the port in the netlist. Other inputs of the netlist
        are 0, other outputs are left open.
    seed : int
        Seed of the random bits.

    Raises
    ------
    UnsupportedCell
        If a cell, or a port or parameter that it uses, has no model.
    ValueError
        If the netlist lacks a port of ``pins``.
    """
    module = json.loads(Path(path).read_text(encoding="utf-8"))["modules"]["top"]
    noise = random.Random(seed)
    lines = ["module gates (input wire clk, rst, rx, output wire tx);"]
    nets, body = {}, []

    def net(bit):
        if bit in ("0", "1", "x"):
            return f"1'b{noise.randrange(2) if bit == 'x' else bit}"
        return nets.setdefault(bit, f"n{bit}")

    def joined(bits):
        return net(bits[0]) if len(bits) == 1 else f"{{{', '.join(map(net, reversed(bits)))}}}"

    for missing in set(pins.values()) - set(module["ports"]):
        raise ValueError(f"a pin must be one of {', '.join(module['ports'])}, not {missing!r}")
    _connect_clocks(module, pins["clk"])
    pin_of = {port: pin for pin, port in pins.items()}
    for name, port in module["ports"].items():
        bits, pin = joined(port["bits"]), pin_of.get(name)
        if pin == "tx":
            body.append(f"assign tx = {bits};")
        elif pin or port["direction"] == "input":
            body.append(f"assign {bits} = {pin or 0};")
    for name, cell in module["cells"].items():
        if cell["type"] == "MULT18X18D":
            cell = _with_two_resets(name, cell)
        if cell["type"] not in _IGNORED_CELLS:
            body.append(_instance(name, cell, _model(name, cell, family), joined, noise))
    lines += [f"wire {name};" for name in nets.values()]
    models = "\n".join(file.read_text(encoding="utf-8") for file in FAMILIES[family])
    return "\n".join(["`define NOISE", models, *lines, *body, "endmodule", ""])


def _connect_clocks(module, clock):
    """Add the dedicated clock wires of an iCE40, which nextpnr leaves out of the netlist.

    These wires connect the clock pin to the PLL, directly or through a global buffer, and the PLL
    to a global buffer.
    """
    cells = list(module["cells"].values())
    pin = module["ports"][clock]["bits"]
    for pll in (cell["connections"] for cell in cells if cell["type"] == "ICESTORM_PLL"):
        reference = pll["REFERENCECLK"] = pll.get("REFERENCECLK") or pin
        output = pll["PLLOUT_A"] = pll.get("PLLOUT_A") or ["pll"]
        for buffer in (cell["connections"] for cell in cells if cell["type"] == "SB_GB"):
            if not buffer["USER_SIGNAL_TO_GLOBAL_BUFFER"]:
                feeds_pll = buffer["GLOBAL_BUFFER_OUTPUT"] == reference
                buffer["USER_SIGNAL_TO_GLOBAL_BUFFER"] = pin if feeds_pll else output


def _with_two_resets(name, cell):
    """A MULT18X18D whose resets are RST0 and RST1, as the model has them.

    The blocks of a group share the wires of RST0 to RST3, so nextpnr may connect others. A cell
    without parameters for them has the model's own, which need no change.
    """
    registers = [key for key in cell["parameters"] if re.fullmatch(r"REG_\w+_RST", key)]
    if not registers:
        return cell
    used = sorted({cell["parameters"][key].strip() for key in registers})
    if len(used) > 2:
        raise UnsupportedCell(
            f"the simulation model of MULT18X18D has two resets, and cell {name} uses"
            f" {', '.join(used)}"
        )
    wires = {
        port: bits for port, bits in cell["connections"].items() if not re.fullmatch("RST.", port)
    }
    wires |= {f"RST{n}": cell["connections"].get(port, []) for n, port in enumerate(used)}
    numbered = {key: f"RST{used.index(cell['parameters'][key].strip())}" for key in registers}
    return cell | {"parameters": cell["parameters"] | numbered, "connections": wires}


def _model(name, cell, family):
    """(parameters, ports) of the model of ``cell``, which must support all that the cell uses."""
    kind = cell["type"]
    if kind not in _models(family):
        raise UnsupportedCell(f"no simulation model for cell type {kind}, of cell {name}")
    parameters, directions = _models(family)[kind]
    for port, bits in cell["connections"].items():
        if bits and port not in directions and set(bits) - {"0", "x"}:
            raise UnsupportedCell(
                f"the simulation model of {kind} has no port {port}, which cell {name} connects"
            )
    supported = parameters | _IGNORED_PARAMETERS
    for key in cell["parameters"]:
        if key not in supported and key.removesuffix("MUX") not in directions:
            raise UnsupportedCell(
                f"the simulation model of {kind} has no parameter {key}, which cell {name} sets"
            )
    return parameters, directions


def _instance(name, cell, model, joined, noise):
    parameters, directions = model
    assignments = [
        f".{key}({_value(value, noise)})"
        for key, value in cell["parameters"].items() if key in parameters
    ]
    ports = []
    for port, direction in directions.items():
        bits = cell["connections"].get(port, [])
        mux = None if f"{port}MUX" in parameters else cell["parameters"].get(f"{port}MUX")
        if direction == "output":
            ports.append(f".{port}({joined(bits) if set(bits) - {'x'} else ''})")
        elif bits:
            ports.append(f".{port}({'~' if mux == 'INV' else ''}{joined(bits)})")
        else:
            ports.append(f".{port}({joined([_unconnected(cell['type'], port, mux)])})")
    overrides = f" #({', '.join(assignments)})" if assignments else ""
    return f"{cell['type']}{overrides} \\{name} ({', '.join(ports)});"


def _unconnected(kind, port, mux):
    """The value of an unconnected input; ``mux`` is the setting of an ECP5's input multiplexer."""
    if mux is None:
        return _UNCONNECTED.get(kind, {}).get(port, "0")
    return "0" if mux.strip() in ("0", "INV") else "1"


def _value(value, noise):
    """A parameter in Verilog: bits or a string; Yosys ends strings that look like bits with " "."""
    if isinstance(value, str) and re.fullmatch("[01xz]+", value):
        bits = "".join(str(noise.randrange(2)) if bit in "xz" else bit for bit in value)
        return f"{len(bits)}'b{bits}"
    return f'"{value.rstrip()}"' if isinstance(value, str) else value
