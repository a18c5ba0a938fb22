"""Write ``docs/area.md``: what the parts of a design take on an ECP5, and how fast its PEs are.

    make area

Exit code 1 where a PE is larger or slower than it should be at least.
"""

import statistics
import sys
import warnings
from pathlib import Path

from amaranth.hdl import UnusedElaboratable

from weft.boards.devices import DEVICES
from weft.boards.toolchain import VERSIONS, Toolchain, to_rtlil
from weft.commands import epilogue_flags
from weft.config import Config
from weft.geometry import memories
from weft.hw.arith.bf16 import Bf16Mac, FlushingBf16Mac
from weft.hw.arith.mac import PlainMac
from weft.hw.arith.unpacked_bf16 import Bf16Unpacker, FlushingBf16Unpacker
from weft.hw.array.element import ProcessingElement
from weft.hw.control.job_table import JobEntry
from weft.hw.control.loader import Loader
from weft.hw.control.tile_generator import Tile
from weft.hw.core import Core
from weft.hw.output.result_scheduler import Chunk
from weft.hw.output.scalers import SCALERS

ROOT = Path(__file__).parent.parent
PATH = ROOT / "docs" / "area.md"
BUILD = ROOT / "build"
DEVICE = DEVICES["LFE5U-25F"]
CELLS = {"LUT4": "LUT4", "CCU2C": "CCU2C", "TRELLIS_FF": "FF", "MULT18X18D": "DSP", "DP16KD": "RAM"}
SEEDS = range(1, 8)
# Name, leaf, the most LUTs and the least fmax that it should have in the median; None: any.
ELEMENTS = [
    ("INT8, `plain`", PlainMac, None, None),
    ("BF16, IEEE 754", Bf16Mac, 900, 140),
    ("BF16, `flush_subnormals`", FlushingBf16Mac, 700, 140),
]
HEAD = """\
# Cost

`make area` writes this page, with {versions}.

## Processing elements

Each alone, placed and routed on an {device}, speed grade 6, {seeds} seeds. A PE is its MAC, its
result registers and all between them. LUT counts what nextpnr places, carry chains and what feeds
them included. fmax is that of paths between the PE's own registers; how a whole array does is
another matter.

| PE | LUT | FF | DSP | fmax, best | fmax, median | slowest path of the best |
|---|---:|---:|---:|---:|---:|---|
"""
PARTS = """
## Other parts

Cells as `synth_ecp5` counts them, each part alone. What place and route makes of it is not in
these figures.

| part | {names} |
|---|{rules}|
"""


def pipeline(config):
    """What makes results of sums, as the core makes it."""
    geometries = memories(config)
    core = Core(config)
    tile = Tile(geometries, JobEntry(geometries, epilogue_flags(config))["epilogue"].shape)
    chunk = Chunk(acc=core.mac.ACC, lanes=config.lanes, tile=tile, cols=config.cols)
    return core.epilogue(chunk, Loader(geometries=geometries, bytes_in=config.bytes_in))


def parts():
    """Name and component of all that is counted."""
    for mode, scaler in SCALERS.items():
        yield f"multiply, shift and round of one lane, `{mode}`", scaler()
    small = {"b_words": 1024}
    yield "rounder of 4 lanes: clamp and bfloat16", pipeline(Config(dtype="bf16", **small))
    for name, decoder in (
        ("an operand's decoder at the edge, BF16", Bf16Unpacker),
        ("... `flush_subnormals`", FlushingBf16Unpacker),
    ):
        yield name, decoder()
    yield "finisher of 4 lanes, `tflite`, table", pipeline(Config(**small))
    yield "... without table", pipeline(Config(activation="none", **small))
    yield "... `onnx`, zero points of B, no table", pipeline(
        Config(requantize="onnx", activation="none", b_zero_point="column", **small)
    )


def synthesized(tools, component):
    """The netlist of a part."""
    return tools.synthesize(to_rtlil(component), DEVICE, BUILD / "area")


def elements(tools):
    """A row for each PE, and whether that is as it should be."""
    for name, mac, most, least in ELEMENTS:
        netlist = synthesized(tools, ProcessingElement(mac=mac(depth=1)))
        placed = [tools.place(netlist, DEVICE, seed, out_of_context=True) for seed in SEEDS]
        best = max(placed, key=lambda one: one.fmax)
        median = statistics.median(one.fmax for one in placed)
        luts, registers, dsp = (best.used[name] for name in ("LUT", "FF", "DSP"))
        good = (most is None or luts <= most) and (least is None or median >= least)
        first, *_, last = (f"`{name.removeprefix('mac.')}`" for name in best.critical_path.names)
        yield (
            f"| {name} | {luts:,} | {registers:,} | {dsp}"
            f" | {best.fmax:.0f} MHz | {median:.0f} MHz | {first} to {last} |"
        ), good


def main() -> int:
    # The loader and the core are made for what they know alone.
    warnings.simplefilter("ignore", UnusedElaboratable)
    tools = Toolchain(BUILD)
    tools.set_up()
    versions = " and ".join(f"{name} {version}" for name, version in VERSIONS.items())
    lines = [HEAD.format(versions=versions, device=DEVICE.name, seeds=len(SEEDS))]
    good = True
    for row, right in elements(tools):
        lines.append(row + "\n")
        print(row, flush=True)
        good &= right
    rules = "|".join("---:" for _ in CELLS)
    lines.append(PARTS.format(names=" | ".join(CELLS.values()), rules=rules))
    for name, component in parts():
        cells = synthesized(tools, component).cells
        row = f"| {name} | {' | '.join(f'{cells.get(cell, 0):,}' for cell in CELLS)} |"
        lines.append(row + "\n")
        print(row, flush=True)
    PATH.write_text("".join(lines), encoding="utf-8")
    print(PATH)
    if not good:
        print("a PE is larger or slower than it should be at least", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
