"""The FPGAs that a design is placed on: what they hold, and what the tools call them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["DEVICES", "RESOURCES", "Device"]

RESOURCES = "LUT", "FF", "DSP", "RAM", "SPRAM"

# By family; last, what each resource is in the report of place and route.
_PROGRAM = {"ecp5": "nextpnr-ecp5", "ice40": "nextpnr-ice40"}
# By target. DSP blocks are instantiated, not inferred. ECP5: without wide multiplexers, which take
# more LUTs than they save time.
_SYNTHESIS = {
    "ecp5": "synth_ecp5 -nowidelut",
    "ice40hx": "synth_ice40 -device hx",
    "ice40up": "synth_ice40 -device u",
}
_AIM = {"ecp5": 200, "ice40": 100}
_FREE = {"ecp5": ("--lpf-allow-unconstrained",), "ice40": ("--pcf-allow-unconstrained",)}
_PLACED = {
    "ecp5": {
        "LUT": "TRELLIS_COMB", "FF": "TRELLIS_FF", "DSP": "MULT18X18D", "RAM": "DP16KD",
    },
    "ice40": {
        "LUT": "ICESTORM_LC", "DSP": "ICESTORM_DSP", "RAM": "ICESTORM_RAM",
        "SPRAM": "ICESTORM_SPRAM",
    },
}
# An iCE40's flip-flops share cells with LUTs: they are counted in the netlist.
_FLIP_FLOPS = re.compile(r"SB_DFF\w*")


@dataclass(frozen=True)
class Device:
    """One part, in one package and speed grade.

    Attributes
    ----------
    name : str
    family : str
        ``ecp5`` or ``ice40``.
    target : str
        That of a `weft.config.Config` made for it.
    options : tuple of str
        That choose it, for its program of place and route.
    capacity : dict of int
        By `RESOURCES`: LUTs (of an iCE40: logic cells, a LUT and a flip-flop each), flip-flops, DSP
        blocks, block RAMs and single-port RAMs; what it has none of is left out.
    blocks : pair of tuples of int
        Columns and lines where DSP blocks lie, four to a group, in nextpnr's coordinates; of an
        iCE40 none.
    """

    name: str
    family: str
    target: str
    options: tuple[str, ...]
    capacity: Mapping[str, int]
    blocks: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    @property
    def program(self) -> str:
        """What places and routes for it."""
        return _PROGRAM[self.family]

    @property
    def target_mhz(self) -> int:
        """MHz that place and route is asked for."""
        return _AIM[self.family]

    @property
    def reset(self) -> bool:
        """Whether a reset has a global net: on an ECP5 it takes wires to each slice as any signal.

        Without one, registers start as they were configured.
        """
        return self.family == "ice40"

    @property
    def unconstrained(self) -> tuple[str, ...]:
        """Its options for a design whose ports may have any pins."""
        return _FREE[self.family]

    @property
    def out_of_context(self) -> tuple[str, ...]:
        """Its options for a part of a design, whose ports have no pins."""
        return ("--out-of-context",) if self.family == "ecp5" else self.unconstrained

    @property
    def synthesis(self) -> str:
        """The command of Yosys."""
        return _SYNTHESIS[self.target]

    def count_resources(
        self, cells: Mapping[str, int], placed: Mapping[str, int]
    ) -> dict[str, int]:
        """Resources taken, by `RESOURCES`, of what is in a netlist and of what was placed."""
        used = {name: placed.get(cell, 0) for name, cell in _PLACED[self.family].items()}
        if self.family == "ice40":
            used["FF"] = sum(n for cell, n in cells.items() if _FLIP_FLOPS.fullmatch(cell))
        return {name: used.get(name, 0) for name in RESOURCES if name in self.capacity}

    def resource(self, cell: str) -> str:
        """What the report's ``cell`` is among `RESOURCES`; itself where it is none of them."""
        names = {placed: name for name, placed in _PLACED[self.family].items()}
        return names.get(cell, cell)


def _ecp5(size, package, luts, ram, columns, lines):
    options = f"--{size}k", "--speed", "6", "--package", package
    capacity = {"LUT": luts, "FF": luts, "DSP": 4 * len(columns) * len(lines), "RAM": ram}
    return Device(f"LFE5U-{size}F", "ecp5", "ecp5", options, capacity, (columns, lines))


DEVICES = {
    device.name: device for device in (
        _ecp5(25, "CABGA381", 24_288, 56, (4, 13, 22, 33, 42, 51, 60), (13,)),
        _ecp5(45, "CABGA381", 43_848, 108, (4, 13, 22, 31, 42, 51, 60, 69, 78), (22, 46)),
        _ecp5(
            85, "CABGA756", 83_640, 208,
            (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114), (10, 34, 58),
        ),
        Device(
            "iCE40UP5K", "ice40", "ice40up", ("--up5k", "--package", "sg48"),
            {"LUT": 5280, "FF": 5280, "DSP": 8, "RAM": 30, "SPRAM": 4},
        ),
        Device(
            "iCE40HX8K", "ice40", "ice40hx", ("--hx8k", "--package", "ct256"),
            {"LUT": 7680, "FF": 7680, "RAM": 32},
        ),
    )
}
