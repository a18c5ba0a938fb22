"""The FPGA families that a core can be built for, by the ``target`` of a Config."""

from dataclasses import dataclass, replace

from weft.registry import Registry

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """An FPGA family; its hardware is in `weft.hw.fabrics`, its tools in `weft.boards.flows`.

    Parameters
    ----------
    name : str
    mac_suffix : str
        Suffix of the names of the int8 MAC cells for this family.
    has_dsp : bool
        Whether PEs can multiply in DSP blocks.
    dsp_blocks : int or None
        DSP blocks of its largest device, if PEs use logic for products that have no block.
    prefers_fip : bool
        Whether multiplier "auto" selects a fast inner product for an even depth, up to
        ``max_fip_depth``.
    max_fip_depth : int or None
        The largest depth for which a fast inner product fits DSP blocks; None without a limit.
    edge_registers : int
        Registers between an operand buffer and the edge of the array.
    pipelines_results : bool
        Whether the result buffer has an output register, and the selection of lanes a pipeline.
    reorder_latency : int
        Cycles from a chunk's arrival at the reorder buffer to its being readable there.
    serial_epilogue : bool
        Whether int8 results are requantized digit by digit where the Config allows it: logic cells
        are scarce.
    single_port : bool
        Whether the memory of a network core of one row has one port: logic cells are scarce,
        or the family has large memories with one port.
    narrow_headers : bool
        Whether the command decoder keeps only the bits of a header that the core can use.
    models : str or None
        File in ``sim/primitives`` with models of the primitives; None if a core uses none.
    fusesoc_arch : str
        The architecture for which FuseSoC synthesizes a core.
    """

    name: str
    mac_suffix: str = ""
    has_dsp: bool = False
    dsp_blocks: int | None = None
    prefers_fip: bool = False
    max_fip_depth: int | None = None
    edge_registers: int = 0
    pipelines_results: bool = False
    reorder_latency: int = 0
    serial_epilogue: bool = False
    single_port: bool = False
    narrow_headers: bool = False
    models: str | None = None
    fusesoc_arch: str = "ecp5"

    @property
    def result_read_latency(self) -> int:
        """Cycles from a result buffer address to the selected sums of a chunk."""
        return 4 if self.pipelines_results else 1


_ICE40HX = Target(
    name="ice40hx", mac_suffix="_ice40hx", prefers_fip=True, pipelines_results=True,
    reorder_latency=2, serial_epilogue=True, narrow_headers=True, models="ice40.v",
    fusesoc_arch="ice40", single_port=True,
)
TARGETS = Registry(
    "FPGA family",
    Target(name="generic"),
    Target(
        name="ecp5", mac_suffix="_ecp5", has_dsp=True, prefers_fip=True, edge_registers=1,
        pipelines_results=True, reorder_latency=1, models="ecp5.v", fusesoc_arch="ecp5",
    ),
    _ICE40HX,
    # An SB_MAC16 computes one product, or two of bytes; the factors of a fast inner product have
    # nine bits.
    replace(
        _ICE40HX, name="ice40up", mac_suffix="_ice40up", has_dsp=True, dsp_blocks=8,
        max_fip_depth=2,
    ),
    Target(
        name="gowin", mac_suffix="_gowin", has_dsp=True, prefers_fip=True, edge_registers=1,
        pipelines_results=True, reorder_latency=1, models="gowin.v",
        fusesoc_arch="gowin",
    ),
)
