"""The FPGAs that a design can be placed on, and their resources."""

from collections.abc import Mapping
from dataclasses import dataclass

from weft.boards.flows import FLOWS, Flow

__all__ = ["DEVICES", "MISCOUNTED", "RESOURCES", "Device", "amount"]

RESOURCES = "LUT", "FF", "DSP", "RAM", "SPRAM"
# A gate of a clock, of which nextpnr counts one more for each of the 24 global wires.
MISCOUNTED = "DQCE"
UNTIMED = (
    "nextpnr does not time DSP blocks, and its other delays are too small: so each block uses all"
    " its registers, with a register before and after it, and the clock is at most 1 / 1.2 of the"
    " one that nextpnr reaches"
)
# Cells of a Gowin FPGA that are counted as another one, in a netlist before and after placement. An
# ALU takes the place of a LUT.
_COUNTED_AS = {
    **dict.fromkeys(("LUT1", "LUT2", "LUT3", "ALU"), "LUT4"),
    **dict.fromkeys(("DFFE", "DFFR", "DFFRE", "DFFS", "DFFSE"), "DFF"),
    **dict.fromkeys(("SDP", "SDPB", "SDPX9B", "DP", "DPB"), "BSRAM"),
}


@dataclass(frozen=True)
class Device:
    """An FPGA in one package and speed grade.

    Attributes
    ----------
    name : str
    target : str
        Its FPGA family: the ``target`` of a `weft.config.Config` for this FPGA.
    options : tuple of str
        Options of nextpnr: the FPGA, its package and its speed grade, and the placer if it is not
        the default.
    capacity : dict of int
        Amount of each of `RESOURCES`: LUTs (iCE40: logic cells of a LUT and a flip-flop each),
        flip-flops, DSP blocks (Gowin: multipliers of 9 x 9 bits), block RAMs and single-port RAMs;
        resources that the FPGA lacks are left out.
    dsp_sites : pair of tuples of int
        Columns and rows of the groups of four DSP blocks, in nextpnr's coordinates; ECP5 only.
    ram_sites : pair of tuples of int
        The same for the groups of four block RAMs; LFE5U-85F only.
    """

    name: str
    target: str
    options: tuple[str, ...]
    capacity: Mapping[str, int]
    dsp_sites: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    ram_sites: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    @property
    def package(self) -> str:
        """The name of its package in nextpnr; of a Gowin FPGA, the whole part."""
        option = "--package" if "--package" in self.options else "--device"
        return self.options[self.options.index(option) + 1]

    @property
    def flow(self) -> Flow:
        """The tools for its FPGA family."""
        flow = FLOWS[self.target]
        return flow.on(self) if self.target == "gowin" else flow

    @property
    def spare(self) -> float:
        """The least ratio of the clock that nextpnr reaches to the clock of a board.

        The delays of nextpnr for a Gowin FPGA are about 20 % smaller than those of the vendor's
        tool.
        """
        return 1.2 if self.target == "gowin" else 1

    @property
    def untimed(self) -> str:
        """A sentence about what the clocks of place and route do not cover; "" if nothing."""
        return UNTIMED if self.target == "gowin" else ""

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
        used = {name: amount(placed, cell) for name, cell in self.flow.cells.items()}
        if pattern := self.flow.flip_flops:
            used["FF"] = sum(n for cell, n in cells.items() if pattern.fullmatch(cell))
        return {name: used.get(name, 0) for name in RESOURCES if name in self.capacity}

    def resource(self, cell: str) -> str:
        """The name in `RESOURCES` of a cell type; other cell types are returned unchanged."""
        names = {kind: name for name, kind in self.flow.cells.items()}
        return names.get(_COUNTED_AS.get(cell, cell), cell)


def amount(cells: Mapping[str, int], kind: str) -> int:
    """The number of cells that count as a ``kind`` of cell, from their number by type."""
    return sum(count for cell, count in cells.items() if _COUNTED_AS.get(cell, cell) == kind)


def _ecp5(size, package, luts, ram, columns, rows, ram_rows=()):
    options = f"--{size}k", "--speed", "6", "--package", package
    capacity = {"LUT": luts, "FF": luts, "DSP": 4 * len(columns) * len(rows), "RAM": ram}
    return Device(
        f"LFE5U-{size}F", "ecp5", options, capacity, (columns, rows), (columns, ram_rows)
    )


def _gowin(name, part, die, capacity):
    # A flip-flop without a LUT or an ALU before it takes the place of one, which the spreading of
    # nextpnr does not know. With less density than its default of 0.9, the legalization that
    # follows has less to move.
    options = "--device", part, "--vopt", f"family={die}", "--placer-heap-beta", "0.65"
    return Device(name, "gowin", options, capacity)


DEVICES = {
    device.name: device for device in (
        _ecp5(25, "CABGA381", 24_288, 56, (4, 13, 22, 33, 42, 51, 60), (13,)),
        _ecp5(45, "CABGA381", 43_848, 108, (4, 13, 22, 31, 42, 51, 60, 69, 78), (22, 46)),
        _ecp5(
            85, "CABGA756", 83_640, 208,
            (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114), (10, 34, 58), (22, 46, 70, 82),
        ),
        Device(
            "iCE40UP5K", "ice40up", ("--up5k", "--package", "sg48"),
            {"LUT": 5280, "FF": 5280, "DSP": 8, "RAM": 30, "SPRAM": 4},
        ),
        Device(
            "iCE40HX8K", "ice40hx", ("--hx8k", "--package", "ct256"),
            {"LUT": 7680, "FF": 7680, "RAM": 32},
        ),
        _gowin(
            "GW2AR-18C", "GW2AR-LV18QN88C8/I7", "GW2A-18C",
            {"LUT": 20736, "FF": 15552, "DSP": 96, "RAM": 46},
        ),
        _gowin(
            "GW1NR-9C", "GW1NR-LV9QN88PC6/I5", "GW1N-9C",
            {"LUT": 8640, "FF": 6480, "DSP": 40, "RAM": 26},
        ),
    )
}
