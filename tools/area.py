"""Measure the area of single components on an ECP5, and the fmax of its PEs.

    make area

Exit code 1 if a PE is larger or slower than its limit.
"""

import statistics
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

from amaranth.hdl import Module, UnusedElaboratable, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from tools import results
from weft.boards.designs import NETWORKS_85F
from weft.boards.devices import DEVICES
from weft.boards.toolchain import Toolchain, digests, to_rtlil
from weft.commands import epilogue_flags
from weft.config import Config
from weft.geometry import memories
from weft.hw.arith.bf16 import Bf16Unpacker, Ecp5Bf16Mac, Ecp5FlushingBf16Mac, FlushingBf16Unpacker
from weft.hw.arith.mac import PlainMac
from weft.hw.array.systolic import ProcessingElement
from weft.hw.control.job_table import JobEntry, Loader
from weft.hw.control.tile_generator import Tile
from weft.hw.core import Core
from weft.hw.fabrics import FABRICS
from weft.hw.network_core.memory.program_memory import ProgramMemory
from weft.hw.network_core.output.lstm import Lstm
from weft.hw.network_core.output.rescaler import Rescaler
from weft.hw.network_core.output.softmax import Softmax
from weft.hw.output.result_scheduler import Chunk
from weft.hw.output.scalers import SCALERS
from weft.network_core.config import NetworkCoreConfig
from weft.timing import Latencies

BUILD = results.ROOT / "build"
DEVICE = DEVICES["LFE5U-25F"]
CELLS = {"LUT4": "LUT4", "CCU2C": "CCU2C", "TRELLIS_FF": "FF", "MULT18X18D": "DSP", "DP16KD": "RAM"}
SEEDS = range(1, 8)
# Name, MAC cell, most LUTs, least median fmax in MHz; None: no limit.
ELEMENTS = [
    ("INT8, `plain`", PlainMac, None, None),
    ("BF16, IEEE 754", Ecp5Bf16Mac, 900, 140),
    ("BF16, `flush_subnormals`", Ecp5FlushingBf16Mac, 700, 140),
]
PES = f"""\
Each PE is placed and routed alone on an {DEVICE.name}, speed grade 6, with {len(SEEDS)} seeds. A PE
is its MAC cell and its result registers. LUT counts the cells that nextpnr places, with carry
chains and their inputs. fmax counts the paths between registers of the PE only; a whole array may
be slower."""
PE_HEADS = """\
| PE | LUT | FF | DSP | best fmax | median fmax | slowest path at the best fmax |
|---|---:|---:|---:|---:|---:|---|
"""
PARTS = "Cells of each component alone, after `synth_ecp5` and before place and route."


class PlainPorts(wiring.Component):
    """``component`` with a plain port of bits for each of its ports.

    Amaranth names the elements of an array like the bits of a port, ``sums[0]``. ABC9 then fails,
    if the array is itself a port.
    """

    def __init__(self, component):
        self.component = component
        self.ports = {
            "__".join(map(str, path)): (member.flow, Value.cast(port))
            for path, member, port in component.signature.flatten(component)
        }
        super().__init__({name: flow(len(port)) for name, (flow, port) in self.ports.items()})

    def elaborate(self, platform):
        m = Module()
        m.submodules.component = self.component
        for name, (flow, port) in self.ports.items():
            plain = getattr(self, name)
            m.d.comb += port.eq(plain) if flow is In else plain.eq(port)
        return m


def epilogue(config):
    """The component that turns sums into results, as the core makes it."""
    geometries = memories(config)
    core = Core(config)
    tile = Tile(geometries, JobEntry(geometries, epilogue_flags(config))["epilogue"].shape)
    return core.epilogue(
        Loader(geometries=geometries, bytes_in=config.bytes_in),
        chunk=Chunk(lanes=config.lanes, tile=tile, cols=config.cols), acc=core.mac.ACC,
        lanes=config.lanes, sum_latency=Latencies.of(config).sum_latency,
    )


def components():
    """Names and components for the table of cells."""
    common = {"lanes": 4, "b_words": 1024}
    for mode, scaler in SCALERS.items():
        yield f"scaler of one lane, `{mode}`", scaler(cycles=1, target="ecp5", extra=1)
    yield "BF16 epilogue of 4 lanes: clamp and rounding", epilogue(Config(dtype="bf16", **common))
    yield "BF16 operand unpacker at the edge", Bf16Unpacker()
    yield "... `flush_subnormals`", FlushingBf16Unpacker()
    yield "requantizer of 4 lanes, `tflite`, table", epilogue(Config(**common))
    yield "... without table", epilogue(Config(activation="none", **common))
    yield "... `onnx`, zero points of B, no table", epilogue(
        Config(requantize="onnx", activation="none", b_zero_point="column", **common)
    )
    for name, sizes in (("program memory of 8 x 8 x 8, beats of 32 bytes", (8, 8, 8)),
                        ("... of 6 x 4 x 4, beats of 16 bytes", (6, 4, 4))):
        rows, cols, depth = sizes
        core = Config(
            rows=rows, cols=cols, depth=depth, lanes=cols, requantize="tflite", activation="none",
            target="ecp5",
        )
        yield name, ProgramMemory(NetworkCoreConfig(array=core, program_words=1 << 17))
    networks = NETWORKS_85F.config
    yield "`softmax` of the ULX3S-85F's network core: its unit", Softmax(networks)
    yield "`lstm` of the same core: its unit", Lstm(replace(networks, lstm=True))
    lane = replace(networks.array, lanes=1)
    for name, multiplies in (("a lane of a network core", False), ("... `multiply_maps`", True)):
        yield name, Rescaler(
            replace(networks, array=lane, softmax=False, multiply_maps=multiplies)
        )


def designs() -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
    """The name of each row of the record, and a function for the digests of its design."""
    for name, mac, *_ in ELEMENTS:
        yield name, lambda mac=mac: digests(to_rtlil(element(mac)), DEVICE, [*SEEDS])
    for name, component in components():
        yield name, lambda component=component: digests(to_rtlil(PlainPorts(component)), DEVICE)


def element(mac):
    """A PE with a kind of MAC cell."""
    return ProcessingElement(mac=mac(depth=1), lut_ram=FABRICS["ecp5"].lut_ram)


def synthesized(tools, component):
    """The netlist of a component."""
    return tools.synthesize(to_rtlil(component), DEVICE, BUILD / "area")


def elements(tools):
    """A row for each PE, and whether the PE is within its limits."""
    for name, mac, most, least in ELEMENTS:
        netlist = synthesized(tools, element(mac))
        runs = [tools.place(netlist, DEVICE, seed, out_of_context=True) for seed in SEEDS]
        best = max(runs, key=lambda run: run.fmax)
        median = statistics.median(run.fmax for run in runs)
        luts, registers, dsp = (best.used[name] for name in ("LUT", "FF", "DSP"))
        within = (most is None or luts <= most) and (least is None or median >= least)
        first, *_, last = (f"`{name.removeprefix('mac.')}`" for name in best.critical_path.names)
        yield (
            f"| {name} | {luts:,} | {registers:,} | {dsp}"
            f" | {best.fmax:.0f} MHz | {median:.0f} MHz | {first} to {last} |"
        ), within


def main() -> int:
    # The loader and the core are constructed for their shapes only.
    warnings.simplefilter("ignore", UnusedElaboratable)
    tools = Toolchain(BUILD)
    tools.set_up()
    lines, good = [PE_HEADS], True
    for row, within in elements(tools):
        lines.append(row + "\n")
        print(row, flush=True)
        good &= within
    parts = [f"| component | {' | '.join(CELLS.values())} |\n|---|{'---:|' * len(CELLS)}\n"]
    for name, component in components():
        cells = synthesized(tools, PlainPorts(component)).cells
        row = f"| {name} | {' | '.join(f'{cells.get(cell, 0):,}' for cell in CELLS)} |"
        parts.append(row + "\n")
        print(row, flush=True)
    tables = [
        results.table("".join(lines), title="Processing elements", about=PES),
        results.table("".join(parts), title="Other components", about=PARTS),
    ]
    print(results.save(
        "area", tables, title="Area of components", command="make area", about="",
        of=["tools.area"], designs={name: found() for name, found in designs()},
    ))
    if not good:
        print("a PE is larger or slower than its limit", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
