"""Write the tables of ``docs/explore.md``: errors of the estimates, and their rate.

    make estimates
"""

import itertools
import sys
import time
from pathlib import Path

import numpy as np

from tools.network_tables import replaced
from weft.boards.devices import DEVICES
from weft.cli.explore_model import ERROR_COLUMNS, error_rows
from weft.config import Config
from weft.explore.estimate import Estimator
from weft.explore.recorded import fitted
from weft.explore.space import draws
from weft.explore.workload import MatrixWorkload, NetworkWorkload

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "explore.md"
COUNT = 2000  # estimates that are timed


def errors() -> str:
    """The table of the errors."""
    lines = [ERROR_COLUMNS, ["---", *["---:"] * (len(ERROR_COLUMNS) - 1)], *error_rows()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rates() -> str:
    """The table of the rates, on one core: with cycles that are known, and with new ones."""
    import weft

    device = DEVICES["LFE5U-25F"]
    base = Config(target="ecp5", activation="none")
    network = weft.load(str(ROOT / "examples" / "digits_cnn.tflite"))
    lines = ["| workload | cycles known | first time |", "|---|---:|---:|"]
    for name, workload in (
        ("64x64x64", MatrixWorkload(64, 64, 64)), ("digits_cnn", NetworkWorkload(network)),
    ):
        estimator = Estimator(device, [workload], fitted(device))
        drawn = draws(device, base, np.random.default_rng(1), peak=(4, 64))
        some = list(itertools.islice(drawn, 10))
        first = _rate(estimator, some)
        known = _rate(estimator, some * (COUNT // len(some)))
        lines.append(f"| {name} | {known:,.0f} a second | {first:,.0f} a second |")
    return "\n".join(lines)


def _rate(estimator, configs):
    start = time.process_time()
    for config in configs:
        estimator.estimate(config)
    return len(configs) / (time.process_time() - start)


def main() -> int:
    tables = {"make estimates errors": errors(), "make estimates rates": rates()}
    PAGE.write_text(replaced(PAGE, tables), encoding="utf-8")
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
