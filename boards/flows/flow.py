"""`Flow`: what boards and toolchain ask of an FPGA family."""

import re
from collections.abc import Mapping

__all__ = ["Flow"]

# (rows, cols, depth) of an array.
Shape = tuple[int, int, int]


class Flow:
    """Yosys and nextpnr for an FPGA family, and its clock hardware.

    Attributes
    ----------
    name : str
        The name of the family in nextpnr, and of its cell models in `weft.sim.gates`.
    synthesis : str
        The commands of Yosys; the last one is the synthesis, without its files.
    target_mhz : int
        Clock frequency that place and route aims for, where no board gives one.
    unconstrained : tuple of str
        Options of nextpnr for a design whose ports may use any pins.
    out_of_context : tuple of str
        Options of nextpnr for a part of a design, whose ports have no pins.
    constraints_option, config_option : str
        Options of nextpnr for the file with the pins, and for its result.
    constraints : str
        Suffix of the file with pins and clocks.
    missing_pin : regular expression
        nextpnr's message about a pin that the package does not have; its group is the pin.
    packer : str
        The program that packs a bitstream.
    packer_options : tuple of str
    bitstream : str
        Suffix of a bitstream.
    cells : dict of str
        The name of each of `weft.boards.devices.RESOURCES` in nextpnr's report.
    flip_flops : regular expression or None
        Cell types of flip-flops in the netlist, if nextpnr does not report them.
    reset : bool
        Whether designs have a reset.
    simulated_stage : str
        The netlist that ``weft gatesim`` simulates: "synthesized" or "routed".
    shapes : tuple of Shape
        Arrays that ``weft build --fit`` tries.
    """

    name: str
    synthesis: str
    target_mhz: int
    unconstrained: tuple[str, ...]
    out_of_context: tuple[str, ...]
    constraints_option: str
    config_option: str
    constraints: str
    missing_pin: re.Pattern
    packer: str
    packer_options: tuple[str, ...] = ()
    bitstream: str
    cells: Mapping[str, str]
    flip_flops: re.Pattern | None = None
    reset: bool
    simulated_stage: str
    shapes: tuple[Shape, ...]

    @property
    def program(self) -> str:
        """The program for place and route."""
        return f"nextpnr-{self.name}"

    def fit(self, shape: Shape, capacity: Mapping[str, int]) -> tuple[dict[str, int], int]:
        """Fields of a Config for an array, and its MACs in logic, on a device of ``capacity``."""
        rows, cols, depth = shape
        return dict(rows=rows, cols=cols, depth=depth), rows * cols * depth

    def improve(self, netlist, device) -> None:
        """Change the netlist, a JSON file, after synthesis for ``device``."""

    def pll(self, source: float, clock: float):
        """The settings of a PLL from ``source`` to ``clock`` MHz; PllError if it has none."""
        raise NotImplementedError

    def add_pll(self, m, pin, settings, *, at_pad: bool, clk, lock, shifted=None,
                step=None):
        """Add a PLL that drives ``clk`` and ``lock``; returns the clock of the start-up counter.

        ``at_pad``: the clock's pin is the one next to the PLL. ``shifted``: the second clock, for
        the settings of `weft.boards.pll.shifted`. ``step``: its falling edge makes this clock
        later by a step, if `weft.boards.pll.moves`.
        """
        raise NotImplementedError
