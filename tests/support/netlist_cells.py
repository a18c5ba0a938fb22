"""Cells of an ECP5 as in the JSON of a Yosys netlist; nets are numbers."""

FF_PORTS = {"CLK": "input", "DI": "input", "Q": "output"}


def flip_flop(d, q):
    return {
        "type": "TRELLIS_FF", "parameters": {"GSR": "DISABLED"}, "attributes": {},
        "port_directions": FF_PORTS, "connections": {"CLK": [2], "DI": [d], "Q": [q]},
    }


def lut(a, b, z):
    return {
        "type": "LUT4", "attributes": {},
        "port_directions": {"A": "input", "B": "input", "Z": "output"},
        "connections": {"A": [a], "B": [b], "Z": [z]},
    }
