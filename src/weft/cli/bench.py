"""``weft bench``: measures designs by synthesis, place and route and simulation; writes a table."""

import argparse
import re
import sys
import time

from weft.cli.options import add_workers, check_cluster, path, started
from weft.config import Config
from weft.files import output_folder

__all__ = [
    "DESCRIPTION", "HELP", "ResultMismatch", "SIZES", "add", "equal_products", "measure_interval",
    "predict_interval", "run", "simulate_interval",
]

SIZES = 128, 256  # M = K = N of the products; the better one counts
# Numbers of products in a batch; the warm-up loads the data that stays resident.
WARM_UP, EARLY, LATE = 2, 2, 4


class ResultMismatch(Exception):
    """The hardware's results or cycles differ from the golden model or the cycle model."""


def equal_products(accelerator, a, b, expected, **arguments) -> tuple[float, bool]:
    """Cycles from one product to the next, for equal products back to back; loading is included.

    ``arguments`` are further arguments of `weft.Accelerator.matmul`. Also returns whether each
    result equals ``expected``, bit for bit.
    """
    import numpy as np

    equal = True

    def cycles(copies):
        nonlocal equal
        c, record = accelerator.matmul(
            np.stack([a] * copies), np.stack([b] * copies), record=True, **arguments
        )
        equal &= c.dtype == expected.dtype
        equal &= all(result.tobytes() == expected.tobytes() for result in c)
        return record.cycles

    cycles(WARM_UP)
    return (cycles(LATE) - cycles(EARLY)) / (LATE - EARLY), equal


def measure_interval(accelerator, size: int) -> float:
    """Cycles from one product to the next, for equal products with M = K = N = ``size``.

    Loading of the operands is included. Operands of an int8 core are int8; if the core can
    requantize, the results are int8 too, with a bias per column and one scale, which are loaded
    once. Operands and results of a bf16 core are bfloat16.

    Raises ResultMismatch if a result differs from the golden model.
    """
    config = accelerator.config
    product = _bf16_product if config.dtype == "bf16" else _int8_product
    interval, equal = equal_products(accelerator, **product(config, size))
    if not equal:
        raise ResultMismatch(f"results of {config.name} differ from golden")
    return interval


def _int8_product(config, size):
    """Arguments of `equal_products`."""
    import numpy as np

    from weft.golden import add_bias, matmul, requantize

    random = np.random.default_rng(size)
    a, b = (random.integers(-128, 128, (size, size), dtype=np.int8) for _ in range(2))
    mode = config.requantize
    bias = random.integers(-9999, 9999, size, dtype=np.int32)
    expected = matmul(a, b)
    if mode == "none":
        return {"a": a, "b": b, "expected": expected}
    scaling = {"multiplier": 3 << 29, "shift": -9, "zero_point": -3}
    if mode == "onnx":
        scaling = {"scale": np.float32(0.001), "zero_point": -3}
    expected = requantize(add_bias(expected, bias), mode=mode, **scaling)
    return {"a": a, "b": b, "expected": expected, "bias": bias, **scaling}


def _bf16_product(config, size):
    """Arguments of `equal_products`."""
    import numpy as np
    from ml_dtypes import bfloat16

    from weft.golden import matmul_bf16, to_bfloat16

    random = np.random.default_rng(size)
    a, b = (random.standard_normal((size, size)).astype(bfloat16) for _ in range(2))
    sums = matmul_bf16(a, b, flush_subnormals=config.flush_subnormals)
    return {"a": a, "b": b, "expected": to_bfloat16(sums), "out_dtype": bfloat16}


def predict_interval(config: Config) -> tuple[int, float]:
    """(size, interval) by the cycle model, for the size of `SIZES` with the better utilization."""
    from weft.host import Accelerator, GoldenTransport

    with Accelerator(GoldenTransport(config), config) as accelerator:
        intervals = [(size, measure_interval(accelerator, size)) for size in SIZES]
    return min(intervals, key=lambda pair: pair[1] / pair[0] ** 3)


def simulate_interval(config: Config, size: int, say=lambda text: None) -> float:
    """The interval of products of ``size``, counted by the simulated hardware."""
    from weft.host import Accelerator
    from weft.sim.transport import SimTransport

    with Accelerator(SimTransport(config, say=say), config) as accelerator:
        return measure_interval(accelerator, size)


HELP = "measure area, clock and throughput of designs"
DESCRIPTION = """\
Measure whole accelerators: link, buffers, tiler, array and post-processing. Each is synthesized,
placed and routed for its device with several seeds. The rate is measured over equal products with
INT8 results, back to back, loading included: peak * utilization * fmax. The cycles come from the
cycle model; the simulated hardware must take the same number. Results of earlier runs are reused
while sources and tools are the same.

  weft bench                       all designs
  weft bench ecp5-25f ice40up5k    some designs
  weft bench --list                list the designs
  weft bench --cluster tcp://host:8786    on the workers of a cluster (docs/explore.md)

Installs Yosys and nextpnr from PyPI at first use. Exit code 1 if a design misses its goal, or is
over 3 % worse than its last record, which is then kept; or if a seed fails: the record has the
other seeds.
"""
WIDTH = 200  # columns of the table if the output is not a terminal


def add(parser):
    """Add the arguments of ``weft bench``."""
    parser.add_argument(
        "design", nargs="*", metavar="DESIGN", help="a design to measure; default all"
    )
    parser.add_argument(
        "--seeds", metavar="INT,...", type=_seeds, default=[1, 2, 3],
        help="seeds of place and route; default 1,2,3",
    )
    parser.add_argument("--list", action="store_true", help="list the designs and exit")
    parser.add_argument(
        "--no-simulation", action="store_true",
        help="take the cycles from the cycle model without a check in simulation",
    )
    add_workers(parser)
    parser.add_argument(
        "--results", metavar="DIR", default="results", type=path("results"),
        help="folder of the records (performance.json); default results",
    )
    parser.add_argument(
        "--docs", metavar="DIR", default="docs/results", type=path("docs"),
        help="folder of the page and the pictures (performance.md, .png); default docs/results",
    )


def _seeds(text):
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text):
        raise argparse.ArgumentTypeError(f"seeds must be integers of 0 or more, not {text!r}")
    return list(dict.fromkeys(map(int, text.split(","))))


def run(args) -> int:
    """Run the command; return its exit code."""
    from weft.boards.presets import PRESETS

    unknown = [name for name in args.design if name not in PRESETS]
    if unknown:
        known = ", ".join(PRESETS)
        print(f"weft: error: design must be one of {known}, not {unknown[0]!r}", file=sys.stderr)
        return 2
    presets = [PRESETS[name] for name in dict.fromkeys(args.design or PRESETS)]
    if args.list:
        for preset in presets:
            print(f"{preset.name:16} {preset.device.name:10} {preset.config.name}"
                  f"{', only the array' if preset.array_only else ''}")
        return 0
    return _measure(presets, args)


def _measure(presets, args):
    from weft.bench.measure import PlacementWork, measure
    from weft.boards.presets import PRESETS
    from weft.cli.performance import PerformanceRecords, problems, regressions
    from weft.cli.progress import progress
    from weft.sim.build import folder
    from weft.sim.tools import ToolError

    check_cluster(args)
    folders = output_folder(args.results), output_folder(args.docs)
    PerformanceRecords(*folders)  # raises an error for damaged records before any work
    build_folder = output_folder(folder() / "bench")
    failures, measured = [], []
    with progress() as show:
        steps = len(presets) * len(args.seeds)
        with (
            started(PlacementWork(), args, show) as engine,
            show.task("placing and routing", total=steps) as advance,
        ):
            results = measure(
                engine, presets, args.seeds, folder=build_folder,
                on_step=_reporter(show, advance, steps),
            )
        for preset in presets:
            result = results[preset.name]
            failures += _failed_seeds(preset, result)
            if not result.by_seed:
                continue
            try:
                cycles = _cycles(preset, build_folder, not args.no_simulation, show)
            except (ToolError, ResultMismatch) as error:
                failures.append(f"{preset.name}: {error}")
                continue
            measured.append(_record(preset, result, cycles))
    records = PerformanceRecords(*folders)  # with the records that other runs have added meanwhile
    for record in measured:
        previous = records.latest.get(record.name)
        failures += problems(record, previous)
        if not regressions(record, previous):
            records.add(record)
    records.save(PRESETS)
    latest = records.latest
    _show([latest[preset.name] for preset in presets if preset.name in latest])
    for failure in failures:
        print(f"MISSED  {failure}")
    return 1 if failures else 0


def _failed_seeds(preset, result):
    """A text for each error of a tool, with its seeds."""
    seeds = {}
    for seed, text in sorted(result.failed.items()):
        seeds.setdefault(text, []).append(str(seed))
    return [f"{preset.name} with seed {', '.join(each)}: {text}" for text, each in seeds.items()]


def _reporter(show, advance, steps):
    """A callback that reports each longer step and estimates the remaining time."""
    start = last = time.monotonic()
    done = 0

    def report(preset, outcome, remaining):
        nonlocal last, done
        advance(steps - remaining - done)
        now, done = time.monotonic(), steps - remaining
        if now - last > 1:
            minutes = (now - start) / done * remaining / 60
            show.say(f"{preset.name}: {outcome}")
            show.say(f"{remaining} runs left, about {minutes:.0f} min")
        last = now

    return report


def _cycles(preset, build_folder, simulate, show):
    """(size, cycles from one product to the next, whether simulated); Nones if only an array."""
    if preset.array_only:
        return None, None, False
    from weft.boards.benchmark import ResultCache, source_digest
    from weft.boards.toolchain import digest

    cache, sources = ResultCache(build_folder / "results"), source_digest()
    with show.task(f"counting cycles of {preset.name}"):
        size, interval = cache.get(digest("model", sources, preset.config),
                                   lambda: predict_interval(preset.config))
        if not simulate:
            return size, interval, False
        counted = cache.get(digest("simulation", sources, preset.config, size),
                            lambda: simulate_interval(preset.config, size, show.say))
    if counted != interval:
        raise ResultMismatch(
            f"{size}^3 took {counted:,.10g} cycles in simulation; the cycle model predicts"
            f" {interval:,.10g}"
        )
    return size, interval, True


def _record(preset, result, cycles):
    from datetime import UTC, datetime

    from weft.cli.performance import Measurement
    from weft.designs import chosen_fields

    size, interval, simulated = cycles
    best = result.best
    return Measurement(
        name=preset.name, device=preset.device.name, array_only=preset.array_only,
        goal=preset.goal, clock=preset.clock, luts=preset.luts, used=best.used,
        path=str(best.critical_path), size=size, interval=interval,
        config=chosen_fields(preset.config),
        fmax={str(seed): round(pnr.fmax, 2) for seed, pnr in sorted(result.by_seed.items())},
        simulated=simulated, design=result.design, date=datetime.now(UTC).date().isoformat(),
        arrivals={block: round(delay, 3) for block, delay in best.arrivals.items()},
        minutes=round(best.seconds / 60, 1), digests=result.digests,
    )


def _show(records):
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from weft.cli.performance import COLUMNS, rows

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in COLUMNS[:2] else "right")
    for row in rows(records):
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:  # do not wrap the table in a file
        console = Console(width=WIDTH)
    console.print(table)
