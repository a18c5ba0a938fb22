"""``weft info``: prints the fields of a design, its buffers, and its cycles or its operators."""

import argparse
import dataclasses
import re

from weft.cli.options import add_config, any_config_of
from weft.commands import Job, JobFlag, epilogue_flags
from weft.config import Config, ConfigError
from weft.cycles import predict
from weft.design import NETWORK
from weft.geometry import operands
from weft.network_core.config import TEXTS
from weft.timing import Latencies

__all__ = ["DESCRIPTION", "HELP", "add", "cycle_counts", "run"]

HELP = "describe a design and predict its cycles"
DESCRIPTION = """\
Describe a design: its fields, its buffers, the minimum K for which the array never waits for
results, and the predicted cycles of some products: cold (from the first load word to the last
result word), resident (the same with all operands already loaded; - if they do not fit), and steady
(the interval of equal products back to back, loading included).

A file with a table [network_core] describes a network core: its memory, and the operators that it
computes without the host.

  weft info
  weft info --config network_core.toml
  weft info --rows 4 --cols 4 --depth 4 --shape 100x64x10 --shape 1x640x128
"""
ARRAY_FIELDS = (  # that a network core uses
    "rows", "cols", "depth", "hop", "target", "multiplier", "dsp_cols", "ram_cols", "lanes",
    "requantize", "scale_cycles",
)
SHAPES = ["8x8x8", "16x16x16", "64x64x64", "128x128x128"]
MAX_SIZE = 1 << 31  # of M, K and N
REPEATS = 4
RAW = JobFlag(0)


def add(parser):
    """Add the arguments of ``weft info``."""
    parser.add_argument(
        "--shape", action="append", metavar="MxKxN", type=_shape,
        help="a product to predict; can be given several times; default " + " ".join(SHAPES),
    )
    add_config(parser)


def _shape(text):
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)x([1-9]\d*)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"shape must be MxKxN, each 1 or more, not {text!r}")
    return tuple(int(number) for number in match.groups())


def _check(config, m, k, n):
    """Raise ConfigError for a product that the driver does not accept, or that is too large."""
    shape = f"{m}x{k}x{n}"
    for name, value in (("M", m), ("K", k), ("N", n)):
        if value > MAX_SIZE:
            raise ConfigError(f"shape {shape}: {name} must be in 1..{MAX_SIZE}, not {value}")
    limit = config.data_type.max_k
    if limit and k > limit:
        raise ConfigError(f"shape {shape}: K must be at most {limit} with {config.dtype}, not {k}")


def cycle_counts(config: Config, m: int, k: int, n: int, flags: JobFlag = RAW):
    """(cold, resident, steady) cycles of a product, with the commands that the driver sends.

    ``flags`` of the jobs choose the type of the results. ``cold`` counts from the first load word;
    ``resident`` from the job word, with all operands already loaded (None if they do not fit);
    ``steady`` is the interval of equal products.
    """
    from weft.host.product_cycles import product_cycles

    a, b = operands(config)
    pitch = a.panel_pages(k)
    resident = None
    if a.panels(m) * pitch <= a.pages and b.panels(n) * pitch <= b.pages:
        spans = a.panels(m) * pitch, b.panels(n) * pitch
        job = Job(m, n, k, 0, pitch, spans[0], 0, pitch, spans[1], flags=flags)
        resident = predict(config, [job]).cycles
    counts = [1, REPEATS, 2 * REPEATS]
    (_, cold), (early, _), (late, _) = product_cycles(config, m, k, n, flags, counts)
    return cold, resident, (late - early) / REPEATS


def run(args) -> int:
    """Run the command; return its exit code."""
    config = any_config_of(args)
    if config.kind == NETWORK:
        return _network_core(config, args.shape)
    shapes = args.shape or [_shape(text) for text in SHAPES]
    for shape in shapes:
        _check(config, *shape)
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console()
    fields = dataclasses.fields(Config)
    table = _field_table((f.name, getattr(config, f.name), f.metadata["text"]) for f in fields)
    console.print(f"[bold]{config.name}[/]: {config.peak} MAC/cycle, hash {config.hash:08x}")
    console.print(table)
    console.print(*_facts(config), sep="\n", highlight=False)

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("M x K x N", "results", "cold", "resident", "steady", "utilization"):
        table.add_column(name, justify="right", overflow="fold")
    for m, k, n in shapes:
        for results, flags in result_types(config):
            cold, resident, steady = cycle_counts(config, m, k, n, flags)
            table.add_row(
                f"{m} x {k} x {n}", results, f"{cold:,}",
                "-" if resident is None else f"{resident:,}",
                f"{steady:,.0f}", f"{m * k * n / steady / config.peak:.1%}",
            )
    console.print("\nCycles predicted by the cycle model; utilization in steady state:")
    console.print(table)
    return 0


def _network_core(config, shapes):
    """Print what a network core is, and which operators it computes."""
    if shapes:
        raise ConfigError(
            "--shape must be for a product core; weft report FILE --config FILE has the cycles of a"
            " network on a network core"
        )
    from rich.console import Console

    from weft.models.report.placement import operator_lines

    texts = {f.name: f.metadata["text"] for f in dataclasses.fields(Config)}
    rows = [(name, getattr(config.array, name), texts[name]) for name in ARRAY_FIELDS]
    rows += [(name, getattr(config, name), text) for name, text in TEXTS.items()]
    console = Console()
    console.print(
        f"[bold]{config.name}[/]: {config.kind}, {config.peak} MAC/cycle, hash {config.hash:08x}"
    )
    console.print(_field_table(rows))
    memory = f"memory: {_bytes(config.memory_bytes)}, {config.size_text(config.words)}"
    if config.program_words:
        memory += f"; program memory: {_bytes(config.program_bytes)}"
    console.print(memory, *operator_lines(config), sep="\n", highlight=False, markup=False)
    return 0


def _field_table(rows):
    """The table of fields, of rows (name, value, meaning)."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("field", "value", "meaning"):
        table.add_column(name, justify="right" if name == "value" else "left")
    for name, value, text in rows:
        table.add_row(name, str(value), text)
    return table


def result_types(config: Config) -> list[tuple[str, JobFlag]]:
    """The result types of a Config, each with the job flags that select it."""
    kind = config.data_type
    narrow = ((kind.narrow.name, flag) for flag in epilogue_flags(config)[:1])
    return [(kind.acc.name, RAW), *narrow]


def _facts(config):
    """Lines about the size of the buffers, and about the K needed for the full rate."""
    for name, g in zip("AB", operands(config), strict=True):
        side = "rows" if name == "A" else "columns"
        yield (
            f"{name} buffer: {_bytes(g.words * g.word_bytes)}; one panel of {g.edge} {side}"
            f" holds K up to {g.words * g.depth:,}"
        )
    latencies = Latencies.of(config)
    for results, flags in result_types(config):
        size = (config.data_type.narrow if flags else config.data_type.acc).bytes
        words = max(1, size * config.lanes // config.bytes_out)
        out = config.rows * latencies.row_chunks * words
        min_k = (max(out, config.rows) - 1) * config.depth + 1
        yield (
            f"tile time, {results} results: max(ceil(K / {config.depth}), {config.rows} to drain,"
            f" {out} to send) cycles; the array never waits if K is {min_k} or more"
        )


def _bytes(count):
    return f"{count:,} bytes" if count % 1024 else f"{count // 1024:,} KiB"
