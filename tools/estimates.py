"""Measure the errors of the estimates, their rate, and what more workers do.

    make estimates
"""

import itertools
import sys
import time

import numpy as np

from tools import results
from tools.scaling import measured, outcomes_a_second, sizes, wall
from weft.boards.devices import DEVICES
from weft.cli.explore_result import ERROR_COLUMNS, error_rows
from weft.config import Config
from weft.explore.findings import fitted
from weft.explore.model import Estimator
from weft.explore.space import draws
from weft.explore.workload import MatrixWorkload, NetworkWorkload

COUNT = 2000  # estimates that are timed
DESIGNS, SEEDS = 1000, 8  # of the sweep that is scheduled
WORKERS = 1, 10, 100, 1000
ERRORS = """\
Each error is of a point that the model was not fitted to: for each Config, a model is fitted to the
points of all other Configs (leave-one-out). "Typical" is the root mean square. The errors of DSP
and RAM are in blocks. "Points" is the number of points for the area, and "placed" the number for
the clock. The families that end with `networks` have network cores."""
RATES = "Estimates a second on one core, in processor time."
SWEEP = f"""\
Computed, not measured: a sweep of {DESIGNS:,} designs with {SEEDS} seeds each, with the durations
of the recorded ECP5 points. It counts the runs of the tools alone."""
LIMITS = """\
Netlists do not pass the scheduler. The layouts do, and a network of 1 Gbit/s carries 100 MB of them
a second. So the last limit is the rate at which one scheduler, one command and its store take
outcomes."""


def errors() -> str:
    """The table of the errors."""
    lines = [ERROR_COLUMNS, ["---", *["---:"] * (len(ERROR_COLUMNS) - 1)], *error_rows()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rates() -> str:
    """The table of the rates, on one core: with cycles that are known, and with new ones."""
    import weft

    device = DEVICES["LFE5U-25F"]
    base = Config(target="ecp5", activation="none")
    network = weft.load(str(results.ROOT / "examples" / "digits_cnn.tflite"))
    lines = ["| workload | cycles known | first time |", "|---|---:|---:|"]
    for name, workload in (
        ("64x64x64", MatrixWorkload(64, 64, 64)), ("digits_cnn", NetworkWorkload(network)),
    ):
        estimator = Estimator(device, [workload], fitted(base), clock=0.0)
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


def workers() -> str:
    """The table of a sweep on more and more workers: recorded durations, drawn at random."""
    durations = [(one.seconds["synthesis"], one.seconds["place"]) for _, one in measured()]
    drawn = np.random.default_rng(1).integers(0, len(durations), DESIGNS)
    sweep = [durations[index] for index in drawn]
    work = sum(synthesis + SEEDS * place for synthesis, place in sweep)
    lines = ["| workers | hours | times faster | workers busy |", "|---:|---:|---:|---:|"]
    for count in WORKERS:
        seconds = wall(sweep, SEEDS, count)
        lines.append(
            f"| {count:,} | {seconds / 3600:,.1f} | {work / seconds:,.0f} |"
            f" {work / seconds / count:.0%} |"
        )
    return "\n".join(lines)


def limits() -> str:
    """The table of what ends the scaling."""
    found = measured()
    median, _ = found[len(found) // 2]
    size = sizes(median)
    seconds = [sum(outcome.seconds.values()) for _, outcome in found]
    place = float(np.mean([outcome.seconds["place"] for _, outcome in found]))
    synthesis = float(np.mean([outcome.seconds["synthesis"] for _, outcome in found]))
    rate = outcomes_a_second(median, size["layout"])
    rows = [
        ("longest point: synthesis, then place and route", f"{max(seconds):,.0f} s"),
        ("mean synthesis, before the seeds of a design", f"{synthesis:,.0f} s"),
        ("mean place and route", f"{place:,.0f} s"),
        ("netlist of the median design, from worker to worker", f"{size['netlist'] / 1e3:,.0f} kB"),
        ("its layout, through the scheduler to the command", f"{size['layout'] / 1e3:,.0f} kB"),
        ("layouts of 100 workers", f"{100 * size['layout'] / place / 1e3:,.0f} kB/s"),
        ("points that scheduler, command and store take", f"{rate:,.0f} a second"),
        ("workers that these points keep busy", f"{rate * place:,.0f}"),
    ]
    return "\n".join(["| limit | measured |", "|---|---:|", *(f"| {a} | {b} |" for a, b in rows)])


def main() -> int:
    tables = [
        results.table(text(), title=title, about=about)
        for text, title, about in (
            (errors, "Errors", ERRORS), (rates, "Rates", RATES), (workers, "More workers", SWEEP),
            (limits, "What ends the scaling", LIMITS),
        )
    ]
    print(results.save(
        "estimates", tables, title="Errors and rates of the estimates", command="make estimates",
        about="", of=["weft.explore.model", "weft.explore.findings", "weft.explore.space"],
    ))
    return 0


if __name__ == "__main__":
    sys.exit(main())
