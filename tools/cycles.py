"""Write ``docs/cycles.md``: the cycles of the designs people ask about.

    python tools/cycles.py

The figures are the cycle model's, which the tests hold against the hardware cycle for cycle.
"""

import sys
from pathlib import Path

from weft.cli.info import cycle_counts, result_types
from weft.config import Config

PATH = Path(__file__).parent.parent / "docs" / "cycles.md"
CONFIGS = [
    Config(rows=8, cols=8, depth=1),
    Config(rows=4, cols=4, depth=4),
    Config(rows=4, cols=4, depth=4, multiplier="fip"),
    Config(rows=12, cols=12, depth=2, multiplier="fip"),
    Config(rows=1, cols=16, depth=8),
    Config(dtype="bf16", rows=4, cols=4),
    Config(dtype="bf16", rows=8, cols=8),
]
SHAPES = [
    (8, 8, 8), (16, 16, 16), (64, 64, 64), (128, 128, 128), (450, 64, 64), (1, 64, 64),
    (1, 640, 128),
]
HEAD = """\
# Figures

Cycles of a product of int8 operands with int32 or int8 results, or of bfloat16 operands with
float32 or bfloat16 ones, 16 bytes a cycle in and 16 out, words always offered and results always
taken, buffers of 4096 words. `make cycles` writes this page; a test fails where it is stale. With
M = 1 one row of the array has work: the best that its utilization can be is 1 / rows.

* **cold**: from the first load word taken to the last result word taken, nothing resident.
* **resident**: from the first word of the job's header to the last result word taken, all operands
loaded before.
* **steady**: the interval of equal products back to back, loading included.
* **utilization**: M * K * N / (steady * peak).
"""


def page() -> str:
    """The page as it should be."""
    lines = [HEAD]
    for config in CONFIGS:
        lines += [
            f"## {config.name}: {config.peak} MAC/cycle",
            "",
            "| M x K x N | results | cold | resident | steady | utilization |",
            "|---:|---:|---:|---:|---:|---:|",
        ]
        for m, k, n in SHAPES:
            for results, flags in result_types(config):
                cold, resident, steady = cycle_counts(config, m, k, n, flags)
                there = "-" if resident is None else f"{resident:,}"
                used = m * k * n / steady / config.peak
                lines.append(
                    f"| {m} x {k} x {n} | {results} | {cold:,} | {there} | {steady:,.0f}"
                    f" | {used:.1%} |"
                )
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    PATH.write_text(page(), encoding="utf-8")
    print(PATH)
    return 0


if __name__ == "__main__":
    sys.exit(main())
