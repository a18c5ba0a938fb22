"""Write tables of the networks of MLPerf Tiny, predicted on boards: README and two other pages.

    WEFT_NETWORKS=folder python -m tools.networks
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from tools import network_core_networks
from tools.network_tables import replaced, write
from weft.models.loading import load
from weft.models.report import report

__all__ = ["PATH", "page"]

PATH = Path(__file__).parent.parent / "docs" / "networks.md"
BOARDS = ["icebreaker", "ulx3s-25f", "ulx3s-85f"]


@dataclass(frozen=True)
class Benchmark:
    """A network of MLPerf Tiny, and published latencies of its reference network.

    Attributes
    ----------
    file : str
    name : str
        Name of the benchmark in MLPerf Tiny.
    m4, m7 : str
        A Cortex-M4 and a Cortex-M7 with X-CUBE-AI, round v1.2.
    fpga, best : str
        Best FPGA and best of all systems in the closed division, rounds v0.5 to v1.3.
    """

    file: str
    name: str
    m4: str
    m7: str
    fpga: str
    best: str


BENCHMARKS = [
    Benchmark("ad01_int8", "ad", "5.3", "1.2", "-", "0.068 (Snapdragon)"),
    Benchmark("kws_int8", "kws", "43", "11", "0.324 (ZedBoard)", "0.065 (Snapdragon)"),
    Benchmark("resnet8_int8", "ic", "165", "41", "0.147 (ZC706)", "0.096 (Snapdragon)"),
    Benchmark("vww_96_int8", "vww", "89", "24", "0.216 (VCU128)", "0.114 (Snapdragon)"),
]


def tables(folder: Path) -> str:
    """The two tables, as Markdown."""
    lines = [
        "| network | MAC | board | on Weft | core, ms | wire, ms | bytes sent | bytes received |",
        "|---|---:|---|---|---:|---:|---:|---:|",
    ]
    cores = {}
    for benchmark in BENCHMARKS:
        network = load(folder / f"{benchmark.file}.tflite")
        for board in BOARDS:
            found = report(network.compile(board))
            cores[benchmark.name, board] = found.core_ms
            macs = found.macs + found.left_out["macs"]
            lines.append(
                f"| {benchmark.file} | {macs:,} | {board} | {len(found.on_weft)} of"
                f" {len(found.layers)} | {found.core_ms:.2f} | {found.wire_ms:,.0f}"
                f" | {found.streams.sent:,} | {found.streams.received:,} |"
            )
    boards = " | ".join(f"{board}, core" for board in BOARDS)
    lines += [
        "",
        f"| benchmark | {boards} | Cortex-M4 | Cortex-M7 | best FPGA | best of all |",
        "|---|" + "---:|" * (len(BOARDS) + 4),
    ]
    for each in BENCHMARKS:
        ours = " | ".join(f"{cores[each.name, board]:.2f}" for board in BOARDS)
        lines.append(
            f"| {each.name} | {ours} | {each.m4} | {each.m7} | {each.fpga} | {each.best} |"
        )
    return "\n".join(lines)


def page(folder: Path) -> str:
    """The text of ``docs/networks.md`` with new tables."""
    return replaced(PATH, {"make networks": tables(folder), **network_core_networks.sizes(folder)})


if __name__ == "__main__":
    sys.exit(write({PATH: page} | network_core_networks.PAGES))
