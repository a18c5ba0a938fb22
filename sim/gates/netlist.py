"""A netlist of Yosys or nextpnr as Verilog, of cells that have models here."""

import json
import random
import re
from functools import cache
from pathlib import Path

from weft.sim.primitives import ICE40, MODELS

__all__ = ["FAMILIES", "UnsupportedCell", "verilog"]

_HERE = Path(__file__).parent
# The models of a family's cells.
FAMILIES = {
    "ice40": (ICE40, *sorted(_HERE.glob("ice40_*.v"))),
    "ecp5": (MODELS, *sorted(_HERE.glob("ecp5_*.v"))),
}
# What an input is that nothing is connected to: 0, but for these.
_REST = {
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
_GONE = {"$scopeinfo"}  # says where a name is from, and does nothing
# Parameters that change nothing here: there is no global reset, and a pin is a wire.
_IDLE = {"GSR", "DATAMUX_MDDR", "DATAMUX_ODDR", "ASYNC_RESET_RELEASE"}


class UnsupportedCell(ValueError):
    """A netlist holds what there is no model for; the message says what."""


@cache
def _models(family):
    """By cell: the names of its parameters and, of its ports, the directions."""
    found = {}
    for path in FAMILIES[family]:
        for name, parameters, ports in _MODULE.findall(path.read_text(encoding="utf-8")):
            directions, way = {}, None
            for word in re.findall(r"\w+", re.sub(r"\[.*?\]", "", ports)):
                if word in ("input", "output", "inout"):
                    way = word
                elif word != "wire":
                    directions[word] = way
            named = set(re.findall(r"(\w+)\s+=", parameters)) if parameters else set()
            found[name] = named, directions
    return found


def verilog(path: Path, family: str, pins: dict[str, str], *, seed: int) -> str:
    """The text of models and a module ``gates`` with the ports ``clk``, ``rst``, ``rx`` and ``tx``.

    What the netlist leaves open (``x``) is noise of ``seed``: no result may follow from it.

    Parameters
    ----------
    path : Path
        The netlist, in the JSON that Yosys and nextpnr write.
    family : str
        Of `FAMILIES`.
    pins : dict of str
        For each port of ``gates`` that of the netlist. Further inputs are 0; of further outputs
        nobody hears.
    seed : int

    Raises
    ------
    Unmodelled
        Where a cell, or something that it uses, has no model.
    ValueError
        Where the netlist has no such port.
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
    _wire_up(module, pins["clk"])
    ours = {theirs: name for name, theirs in pins.items()}
    for name, port in module["ports"].items():
        bits, mine = joined(port["bits"]), ours.get(name)
        if mine == "tx":
            body.append(f"assign tx = {bits};")
        elif mine or port["direction"] == "input":
            body.append(f"assign {bits} = {mine or 0};")
    for name, cell in module["cells"].items():
        if cell["type"] not in _GONE:
            body.append(_instance(name, cell, _model(name, cell, family), joined, noise))
    lines += [f"wire {name};" for name in nets.values()]
    models = "\n".join(file.read_text(encoding="utf-8") for file in FAMILIES[family])
    return "\n".join(["`define NOISE", models, *lines, *body, "endmodule", ""])


def _wire_up(module, clock):
    """Connect what an iCE40 has wires for of its own, which nextpnr leaves out of a netlist.

    They are from the clock's pin to its PLL, through a global buffer or not, and from there to a
    global buffer.
    """
    cells = list(module["cells"].values())
    pin = module["ports"][clock]["bits"]
    for pll in (cell["connections"] for cell in cells if cell["type"] == "ICESTORM_PLL"):
        reference = pll["REFERENCECLK"] = pll.get("REFERENCECLK") or pin
        made = pll["PLLOUT_A"] = pll.get("PLLOUT_A") or ["pll"]
        for buffer in (cell["connections"] for cell in cells if cell["type"] == "SB_GB"):
            if not buffer["USER_SIGNAL_TO_GLOBAL_BUFFER"]:
                before = buffer["GLOBAL_BUFFER_OUTPUT"] == reference
                buffer["USER_SIGNAL_TO_GLOBAL_BUFFER"] = pin if before else made


def _model(name, cell, family):
    """Parameters and ports of the model of ``cell``, which has all that it uses."""
    kind = cell["type"]
    if kind not in _models(family):
        raise UnsupportedCell(f"cell {name} must be of a type that has a model, not {kind}")
    parameters, directions = _models(family)[kind]
    for port, bits in cell["connections"].items():
        if bits and port not in directions and set(bits) - {"0", "x"}:
            raise UnsupportedCell(
                f"port {port} of {kind} {name} must have a model, to be connected"
            )
    for key in cell["parameters"]:
        known = key in parameters or key in _IDLE or key.removesuffix("MUX") in directions
        if not known:
            raise UnsupportedCell(f"parameter {key} of {kind} {name} must have a model, to be set")
    return parameters, directions


def _instance(name, cell, model, joined, noise):
    parameters, directions = model
    given = [
        f".{key}({_value(value, noise)})"
        for key, value in cell["parameters"].items() if key in parameters
    ]
    ports = []
    for port, way in directions.items():
        bits = cell["connections"].get(port, [])
        mux = None if f"{port}MUX" in parameters else cell["parameters"].get(f"{port}MUX")
        if way == "output":
            ports.append(f".{port}({joined(bits) if set(bits) - {'x'} else ''})")
        elif bits:
            ports.append(f".{port}({'~' if mux == 'INV' else ''}{joined(bits)})")
        else:
            ports.append(f".{port}({joined([_rest(cell['type'], port, mux)])})")
    chosen = f" #({', '.join(given)})" if given else ""
    return f"{cell['type']}{chosen} \\{name} ({', '.join(ports)});"


def _rest(kind, port, mux):
    """An input that nothing is connected to: 1 behind a multiplexer of an ECP5 that may invert."""
    if mux is None:
        return _REST.get(kind, {}).get(port, "0")
    return "0" if mux.strip() in ("0", "INV") else "1"


def _value(value, noise):
    """A parameter: bits, or a text, with a space behind it where it could be taken for bits."""
    if isinstance(value, str) and re.fullmatch("[01xz]+", value):
        bits = "".join(str(noise.randrange(2)) if bit in "xz" else bit for bit in value)
        return f"{len(bits)}'b{bits}"
    return f'"{value.rstrip()}"' if isinstance(value, str) else value
