"""Predict the networks of MLPerf Tiny on boards, and write the table of README.

    WEFT_NETWORKS=folder python -m tools.networks
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from tools import network_core_networks, results
from tools.network_tables import networks_folder, replaced
from weft.models.loading import load
from weft.models.report import report

__all__ = ["README", "main", "tables"]

README = results.ROOT / "README.md"
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


OVER_THE_WIRE = """\
One inference on a board with a product core: the time of the core, and the time of the bytes on the
serial port."""
OTHERS = """\
Milliseconds. The columns of boards are the predicted time of the core alone, without wire and host.
All other figures are published results of MLPerf Tiny (MLCommons): measured latencies of whole
systems, closed division. Cortex-M4 and M7: round v1.2, X-CUBE-AI. Best FPGA and best of all: rounds
v0.5 to v1.3. No FPGA has an entry for ad."""
BENCHMARKS = [
    Benchmark("ad01_int8", "ad", "5.3", "1.2", "-", "0.068 (Snapdragon)"),
    Benchmark("kws_int8", "kws", "43", "11", "0.324 (ZedBoard)", "0.065 (Snapdragon)"),
    Benchmark("resnet8_int8", "ic", "165", "41", "0.147 (ZC706)", "0.096 (Snapdragon)"),
    Benchmark("vww_96_int8", "vww", "89", "24", "0.216 (VCU128)", "0.114 (Snapdragon)"),
]


def tables(folder: Path) -> list[dict]:
    """The tables of the record."""
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
    others = [
        f"| benchmark | {boards} | Cortex-M4 | Cortex-M7 | best FPGA | best of all |",
        "|---|" + "---:|" * (len(BOARDS) + 4),
    ]
    for each in BENCHMARKS:
        ours = " | ".join(f"{cores[each.name, board]:.2f}" for board in BOARDS)
        others.append(
            f"| {each.name} | {ours} | {each.m4} | {each.m7} | {each.fpga} | {each.best} |"
        )
    return [
        *network_core_networks.tables(folder),
        results.table("\n".join(lines), title="On product cores", about=OVER_THE_WIRE),
        results.table("\n".join(others), title="Beside other systems", about=OTHERS),
    ]


def main() -> int:
    """Predict all networks; the exit code."""
    folder = networks_folder()
    if folder is None:
        return 2
    text = replaced(README, {"make networks": network_core_networks.summary(folder)})
    README.write_text(text, encoding="utf-8")
    print(README)
    print(results.save(
        "networks", tables(folder), title="Networks of MLPerf Tiny", command="make networks",
        about="Cycles and bytes are predicted exactly.", of=["tools.networks"],
    ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
