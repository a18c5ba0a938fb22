"""Predict the cycles of products on common designs.

    python -m tools.cycles

The cycles come from the cycle model, which the tests compare with the hardware cycle by cycle.
"""

import sys

from tools import results
from weft.cli.info import cycle_counts, result_types
from weft.config import Config

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
ABOUT = """\
The cycles of products on common designs, by the cycle model, which equals the hardware. int8
operands give int32 or int8 results, and bfloat16 operands give float32 or bfloat16 results. Both
streams have 16 bytes a cycle; a command word is always valid, and the result stream is always
ready. The operand buffers have 4096 words.

* **cold**: from the first load word taken to the last result word taken, with no resident operands.
* **resident**: from the first word of the job's header to the last result word taken, with all
  operands resident.
* **steady**: the interval between equal products back to back, including the loads.
* **utilization**: M * K * N / (steady * peak). With M = 1 only one row of the array has work, so
  the utilization is at most 1 / rows."""


def tables() -> list[dict]:
    """A table for each design."""
    found = []
    for config in CONFIGS:
        lines = [
            "| M x K x N | results | cold | resident | steady | utilization |",
            "|---:|---:|---:|---:|---:|---:|",
        ]
        for m, k, n in SHAPES:
            for kind, flags in result_types(config):
                cold, resident, steady = cycle_counts(config, m, k, n, flags)
                resident = "-" if resident is None else f"{resident:,}"
                utilization = m * k * n / steady / config.peak
                lines.append(
                    f"| {m} x {k} x {n} | {kind} | {cold:,} | {resident} | {steady:,.0f}"
                    f" | {utilization:.1%} |"
                )
        title = f"{config.name}: {config.peak} MAC/cycle"
        found.append(results.table("\n".join(lines), title=title))
    return found


def main() -> int:
    print(results.save(
        "cycles", tables(), title="Cycles of products", command="make cycles", about=ABOUT,
        of=["weft.cycles"],
    ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
