"""Tables of the networks of MLPerf Tiny on the boards' network cores."""

import functools
from dataclasses import dataclass
from pathlib import Path

from tools import results
from weft.boards.designs import (
    BATCH1_85F,
    NETWORKS_25F,
    NETWORKS_85F,
    NETWORKS_FAST_85F,
    NETWORKS_UP5K,
    NetworkDesign,
)
from weft.models.loading import load
from weft.models.report.placement import link_bytes

__all__ = ["RUNS", "programs", "summary", "tables"]

TIMES = """\
One inference on a network core, from START to done, at the clock of the board. The core of 8 x 8 x
8 computes SOFTMAX, too; with the others the host does. **Goal** is the largest time without SOFTMAX
that the project accepts."""
SIZES = """\
Bytes of the memory. Setup shares the place of the maps, so the memory needs the larger one of the
two, and the other areas. The two last columns are bytes on the link, with the headers of frames.
The core of ad01 has no loads: the host writes its weights, and it has no setup."""

NPUS = """\
**Share of the peak** is MAC / (cycles * MAC/cycle); with all MACs of the network, those of channels
that Weft leaves out, too. Weft: exact cycles of the core `networks-fast` of the LFE5U-85F, with
SOFTMAX; ad01 with `--for batch1`. Ethos-U: the "NPU cycles" that Arm's compiler Vela 5.2.0
estimates for the same files, with its default system and memory: `vela FILE --accelerator-config
ethos-u55-256`. They are estimates of a chip at up to 1 GHz whose weights come from a flash or a
DRAM beside it. The wire is not in these figures: **wire** is the time of the bytes of one inference
at 3,000,000 baud, which a board needs on top. M7: a Cortex-M7, measured, MLPerf Tiny v1.2,
X-CUBE-AI, whole system."""

# By the file: MACs; "NPU cycles" of Ethos-U55-256, U65-512 and U85-512; ms of a Cortex-M7.
NPU_CYCLES = {
    "kws_int8": (2_656_768, (57_329, 30_699, 28_756), "11"),
    "resnet8_int8": (12_501_632, (107_389, 56_799, 53_427), "41"),
    "vww_96_int8": (7_489_664, (128_825, 80_882, 80_131), "24"),
    "ad01_int8": (264_192, (41_404, 25_998, 38_611), "1.2"),
}
NPU_MACS = {"U55": 256, "U65": 512, "U85": 512}  # of a cycle


@dataclass(frozen=True)
class Run:
    """A network on a core.

    Attributes
    ----------
    file, name, title : str
        Name of the file, of the benchmark, and what it does.
    design : NetworkDesign
    goal : float
        Microseconds of an inference without SOFTMAX, at most.
    wire_goal : int
        Milliseconds from the first bit of the input to the last bit of the result, at most.
    """

    file: str
    name: str
    title: str
    design: NetworkDesign
    goal: float
    wire_goal: int

    def goal_us(self, program) -> float:
        """Microseconds of a program without SOFTMAX, which the host computes on most cores."""
        softmax = sum(step.cycles for step in program.layers if "SOFTMAX" in step.operators)
        return (program.cycles - softmax) / self.design.clock

    @property
    def core(self) -> str:
        """Rows, columns and depth of the array, and the purpose if a board has two such arrays."""
        core = self.design.config.array
        return f"{core.rows} x {core.cols} x {core.depth}{PURPOSES.get(self.design, '')}"


RUNS = [
    Run("ad01_int8", "ad01", "anomaly detection", BATCH1_85F, 10.5, 6),
    Run("kws_int8", "kws", "keyword spotting", NETWORKS_FAST_85F, 106, 4),
    Run("kws_int8", "kws", "keyword spotting", NETWORKS_25F, 350, 4),
    Run("kws_int8", "kws", "keyword spotting", NETWORKS_UP5K, 13_000, 16),
    Run("resnet8_int8", "resnet8", "image classification", NETWORKS_FAST_85F, 271, 14),
    Run("resnet8_int8", "resnet8", "image classification", NETWORKS_UP5K, 40_000, 46),
    Run("vww_96_int8", "vww", "visual wake words", NETWORKS_FAST_85F, 268, 110),
    Run("kws_int8", "kws", "keyword spotting", NETWORKS_85F, 106, 4),
    Run("resnet8_int8", "resnet8", "image classification", NETWORKS_85F, 271, 14),
    Run("vww_96_int8", "vww", "visual wake words", NETWORKS_85F, 268, 110),
]
# Cores of the ULX3S-85F beside the one of `--for networks`, of which its tables tell more.
PURPOSES = {BATCH1_85F: " (`--for batch1`)", NETWORKS_FAST_85F: " (`--for networks-fast`)"}


@functools.cache
def programs(folder: Path):
    """The runs, and their programs."""
    return [(run, load(folder / f"{run.file}.tflite").compile(run.design.config)) for run in RUNS]


def tables(folder: Path) -> list[dict]:
    """The tables of cycles and of bytes."""
    return [
        results.table(_times(folder), title="On network cores", about=TIMES),
        results.table(_sizes(folder), title="Memory of network cores", about=SIZES),
        results.table(_beside_npus(folder), title="Beside neural processors", about=NPUS),
    ]


def _beside_npus(folder):
    """Cycles and share of the peak, of the LFE5U-85F and of Arm's Ethos-U."""
    npus = " | ".join(f"{name}-{macs} | share" for name, macs in NPU_MACS.items())
    lines = [
        f"| network | Weft, cycles | share | core, ms | wire, ms | bytes | {npus} | M7, ms |",
        "|---|" + "---:|" * 12,
    ]
    for run, program in programs(folder):
        if run.design not in PURPOSES:
            continue
        macs, cycles, ms = NPU_CYCLES[run.file]
        link = sum(link_bytes(program))
        entries = [
            f"{program.cycles:,}", _share(macs, program.cycles, run.design.config.array.peak),
            f"{program.cycles / run.design.clock / 1000:.3f}",
            f"{10_000 * link / run.design.baud:.2f}", f"{link:,}",
        ]
        for count, each in zip(cycles, NPU_MACS.values(), strict=True):
            entries += [f"{count:,}", _share(macs, count, each)]
        lines.append(f"| {run.name} | {' | '.join(entries)} | {ms} |")
    return "\n".join(lines)


def _share(macs, cycles, peak):
    return f"{100 * macs / (cycles * peak):.1f} %"


def _sizes(folder):
    """Bytes of the memory and of the link, words, jobs."""
    heads = "cycles", "maps", "setup", "list", "weights", "memory", "words of B", "jobs"
    lines = [
        f"| network | array | {' | '.join(heads)} | sent | received |",
        "|---|---|" + "---:|" * (len(heads) + 2),
    ]
    for run, program in programs(folder):
        areas = [program.areas[name] for name in ("maps", "setup", "list", "weights")]
        words = sum(layer.words for layer in program.layers)
        values = [program.cycles, *areas, program.memory_used, words, program.jobs]
        values += link_bytes(program)
        numbers = " | ".join(f"{value:,}" for value in values)
        lines.append(f"| {run.file} | {run.core} | {numbers} |")
    return "\n".join(lines)


def _times(folder):
    """Cycles and microseconds."""
    lines = [
        "| network | core | cycles | clock, MHz | us | without SOFTMAX, us | goal, us |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for run, program in programs(folder):
        lines.append(
            f"| {run.name} | {run.core} | {program.cycles:,} | {run.design.clock:g}"
            f" | {program.cycles / run.design.clock:.1f} | {run.goal_us(program):.1f}"
            f" | {run.goal} |"
        )
    return "\n".join(lines)


def summary(folder: Path) -> str:
    """The table of README: the networks on the fast core of the LFE5U-85F."""
    clock = NETWORKS_FAST_85F.clock
    lines = [
        f"| network | cycles | at {clock:g} MHz | bytes on the link |", "|---|---:|---:|---:|",
    ]
    for run, program in programs(folder):
        if run.design is NETWORKS_FAST_85F:
            lines.append(
                f"| {run.title} ({run.name}) | {program.cycles:,}"
                f" | {program.cycles / clock / 1000:.2f} ms | {sum(link_bytes(program)):,} |"
            )
    return "\n".join(lines)
