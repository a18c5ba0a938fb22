"""The FPGAs that a design can be placed on: their resources, and the tool options for each."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["DEVICES", "RESOURCES", "Device"]

RESOURCES = "LUT", "FF", "DSP", "RAM", "SPRAM"

_PROGRAM = {"ecp5": "nextpnr-ecp5", "ice40": "nextpnr-ice40"}
# By target. DSP blocks are instantiated, not inferred. ECP5: no wide multiplexers, because the LUTs
# they cost are worth more than the delay they save.
_SYNTHESIS = {
    "ecp5": "synth_ecp5 -nowidelut",
    "ice40hx": "synth_ice40 -device hx",
    "ice40up": "synth_ice40 -device u",
}
_TARGET_MHZ = {"ecp5": 200, "ice40": 100}
_UNCONSTRAINED = {"ecp5": ("--lpf-allow-unconstrained",), "ice40": ("--pcf-allow-unconstrained",)}
# The name of each resource in nextpnr's report.
_CELL_TYPE = {
    "ecp5": {
        "LUT": "TRELLIS_COMB", "FF": "TRELLIS_FF", "DSP": "MULT18X18D", "RAM": "DP16KD",
    },
    "ice40": {
        "LUT": "ICESTORM_LC", "DSP": "ICESTORM_DSP", "RAM": "ICESTORM_RAM",
        "SPRAM": "ICESTORM_SPRAM",
    },
}
# A flip-flop of an iCE40 shares a cell with a LUT, so flip-flops are counted in the netlist.
_FLIP_FLOPS = re.compile(r"SB_DFF\w*")


@dataclass(frozen=True)
class Device:
    """An FPGA in one package and speed grade.

    Attributes
    ----------
    name : str
    family : str
        ``ecp5`` or ``ice40``.
    target : str
        The ``target`` of a `weft.config.Config` for this FPGA.
    options : tuple of str
        Options of nextpnr that choose the FPGA, its package and its speed grade.
    capacity : dict of int
        Amount of each of `RESOURCES`: LUTs (iCE40: logic cells of a LUT and a flip-flop each),
        flip-flops, DSP blocks, block RAMs and single-port RAMs; resources that the FPGA lacks are
        left out.
    dsp_sites : pair of tuples of int
        Columns and rows of the groups of four DSP blocks, in nextpnr's coordinates; ECP5 only.
    """

    name: str
    family: str
    target: str
    options: tuple[str, ...]
    capacity: Mapping[str, int]
    dsp_sites: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    @property
    def program(self) -> str:
        """The program for place and route."""
        return _PROGRAM[self.family]

    @property
    def target_mhz(self) -> int:
        """Clock frequency that place and route aims for, where no board gives one."""
        return _TARGET_MHZ[self.family]

    @property
    def reset(self) -> bool:
        """Whether designs for this FPGA have a reset.

        On an ECP5 they have none: a reset has no global net there, so it would need ordinary
        routing to every slice. The registers start with the values in the bitstream.
        """
        return self.family == "ice40"

    @property
    def unconstrained(self) -> tuple[str, ...]:
        """Options of nextpnr for a design whose ports may use any pins."""
        return _UNCONSTRAINED[self.family]

    @property
    def out_of_context(self) -> tuple[str, ...]:
        """Options of nextpnr for a part of a design, whose ports have no pins."""
        return ("--out-of-context",) if self.family == "ecp5" else self.unconstrained

    @property
    def synthesis(self) -> str:
        """The synthesis command of Yosys."""
        return _SYNTHESIS[self.target]

    def count_resources(
        self, cells: Mapping[str, int], placed: Mapping[str, int]
    ) -> dict[str, int]:
        """Amount of each of `RESOURCES` that a design uses.

        Parameters
        ----------
        cells : dict of int
            Number of cells by type, in the netlist.
        placed : dict of int
            Number of cells by type, in nextpnr's report.
        """
        used = {name: placed.get(cell, 0) for name, cell in _CELL_TYPE[self.family].items()}
        if self.family == "ice40":
            used["FF"] = sum(n for cell, n in cells.items() if _FLIP_FLOPS.fullmatch(cell))
        return {name: used.get(name, 0) for name in RESOURCES if name in self.capacity}

    def resource(self, cell: str) -> str:
        """The name in `RESOURCES` of a cell type; other cell types are returned unchanged."""
        names = {kind: name for name, kind in _CELL_TYPE[self.family].items()}
        return names.get(cell, cell)


def _ecp5(size, package, luts, ram, columns, rows):
    options = f"--{size}k", "--speed", "6", "--package", package
    capacity = {"LUT": luts, "FF": luts, "DSP": 4 * len(columns) * len(rows), "RAM": ram}
    return Device(f"LFE5U-{size}F", "ecp5", "ecp5", options, capacity, (columns, rows))


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
