"""The int8 epilogue: parameters per column, the activation table, and their loads."""

import cocotb
import numpy as np

from weft.commands import JobFlag, Load, LoadFlag, Status
from weft.geometry import memories
from weft.host.packing import ENTRY
from weft.registers import REGISTERS
from weft.sim.bench.core_testbench import core_config, core_test
from weft.sim.bench.products import send_random
from weft.sim.bench.streams import on_icarus
from weft.sim.scenario import A, B

__all__ = [
    "epilogue_aborts", "epilogue_extremes", "epilogue_flow", "parameter_conflicts",
    "random_epilogue", "table_conflicts", "unsupported",
]

FINISH, LOOK_UP = JobFlag.REQUANTIZE, JobFlag.REQUANTIZE | JobFlag.TABLE
_HAS_EPILOGUE = core_config().requantize != "none"
_HAS_TABLE = _HAS_EPILOGUE and core_config().activation != "none"
_RATES = (0, 50, 90)
# Idle and stall: all combinations; on Icarus each rate once.
_FLOW = list(zip(_RATES, (0, 90, 50), strict=True)) if on_icarus() else [
    (idle, stall) for idle in _RATES for stall in _RATES
]


def random_parameters(tb, columns, reach=1 << 16) -> np.ndarray:
    """Random parameters for columns with sums within ``reach``: a record for each column."""
    rng, entries = tb.rng, np.zeros(columns, ENTRY)
    entries["bias"] = rng.integers(-reach, reach, columns)
    if tb.config.requantize == "onnx":
        scale = rng.uniform(1 / reach, 999 / reach, columns).astype(np.float32)
        entries["multiplier"] = scale.view(np.uint32)
    else:
        entries["multiplier"] = rng.integers(1 << 30, 1 << 31, columns)
        entries["shift"] = rng.integers(-14, 1, columns)
    entries["b_zero"] = rng.integers(-128, 128, columns)
    entries["zero"] = rng.integers(-128, 256, columns)
    least = rng.choice([0, -128], columns)
    entries["low"], entries["high"] = least, least + 255
    narrow = rng.random(columns) < 0.3
    entries["low"][narrow] += rng.integers(0, 200, narrow.sum())
    entries["high"][narrow] = entries["low"][narrow] + rng.integers(0, 30, narrow.sum())
    return entries


def send_table(tb):
    """Load a random activation table."""
    tb.load_table(tb.rng.integers(0, 256, 256, dtype=np.uint8))


def send_with_epilogue(tb, m, n, k, *, flags=FINISH, **options):
    """Send a product with int8 results; its operands and parameters are loaded before it."""
    m, n, k = tb.fit(m, n, k)
    a, b = tb.place(A, tb.random(m, k)), tb.place(B, tb.random(n, k))
    parts = [
        lambda: tb.load(a), lambda: tb.load(b),
        lambda: tb.load_parameters(b, random_parameters(tb, n)),
    ]
    for part in tb.rng.permutation(3):
        parts[part]()
    tb.job(a, b, flags=flags, **options)
    return a, b


def random_flags(tb):
    """The flags of a job with int8 results, with a look-up in the table or without one."""
    return LOOK_UP if _HAS_TABLE and tb.rng.random() < 0.5 else FINISH


@cocotb.parametrize((("idle", "stall"), _FLOW))
@core_test(skip=not _HAS_EPILOGUE)
async def epilogue_flow(tb):
    """Int8 results and sums in turns, full and partial tiles, with idle and stall cycles."""
    rows, cols, depth = tb.config.rows, tb.config.cols, tb.config.depth
    if _HAS_TABLE:
        send_table(tb)
    for m, n, k in ((rows + 1, cols + 1, 2 * depth + 1), (1, 1, 1), (rows, 2 * cols, depth)):
        send_with_epilogue(tb, m, n, k, flags=random_flags(tb))
        send_random(tb)
        send_with_epilogue(tb, n, m, k, flags=random_flags(tb))
    # Jobs of one result, back to back: sums must not overtake int8 results.
    a, b = send_with_epilogue(tb, 1, 1, 1)
    for turn in range(8):
        tb.job(a, b, flags=JobFlag(0) if turn % 3 == 1 else random_flags(tb))


@core_test(skip=not _HAS_EPILOGUE, idle=10, stall=10)
async def random_epilogue(tb):
    """Random jobs of all kinds and shapes."""
    if _HAS_TABLE:
        send_table(tb)
    for _ in range(20):
        if tb.rng.random() < 0.3:
            send_random(tb)
        else:
            m, n = (int(tb.rng.integers(1, 3 * e + 1)) for e in (tb.config.rows, tb.config.cols))
            send_with_epilogue(tb, m, n, int(tb.rng.integers(1, 60)), flags=random_flags(tb))


@core_test(skip=not _HAS_EPILOGUE, stall=20)
async def epilogue_extremes(tb):
    """Extreme sums and biases, and sums that wrap in int32."""
    m, n, k = tb.fit(tb.config.rows, 2 * tb.config.cols, 7)
    for value in (-128, 127):
        a = tb.place(A, np.full((m, k), value, np.int8))
        b = tb.place(B, np.full((n, k), -128, np.int8))
        entries = random_parameters(tb, n)
        entries["bias"] = tb.rng.choice([-(1 << 31), (1 << 31) - 1, 0], n)
        if tb.config.requantize != "onnx":
            entries["shift"] = tb.rng.choice([-31, -30, -1, 0, 1, 30], n)
            entries["multiplier"][tb.rng.random(n) < 0.2] = 0
        tb.load(a, b)
        tb.load_parameters(b, entries)
        tb.job(a, b, flags=FINISH)
        tb.job(a, b)


@core_test(skip=not _HAS_EPILOGUE, stall=60)
async def parameter_conflicts(tb):
    """A load of parameters waits for the jobs that use its pages, and only for them."""
    rows, cols = tb.config.rows, tb.config.cols
    m, n, k = tb.fit(2 * rows, 2 * cols, 3 * tb.config.depth)
    a, b = tb.place(A, tb.random(m, k)), tb.place(B, tb.random(n, k), page=0, gap=0)
    tb.load(a, b)
    for _ in range(6):
        tb.load_parameters(b, random_parameters(tb, n))
        for _ in range(int(tb.rng.integers(1, 4))):
            tb.job(a, b, flags=FINISH)
    # Parameters in alternating pages: they load while the previous job runs.
    pages = [page for page in (0, b.pages) if page + b.pages <= tb.geometry[B].pages]
    for turn in range(6):
        copy = tb.place(B, b.matrix, page=pages[turn % len(pages)], gap=0)
        tb.load(copy)
        tb.load_parameters(copy, random_parameters(tb, n))
        tb.job(a, copy, flags=FINISH)


@core_test(skip=not _HAS_TABLE, stall=60)
async def table_conflicts(tb):
    """A table holds for the jobs after it until the next load; all 256 entries are used."""
    m, n, k = tb.fit(2 * tb.config.rows, 2 * tb.config.cols, 2)
    a, b = tb.place(A, tb.random(m, k)), tb.place(B, tb.random(n, k))
    tb.load(a, b)
    tb.load_parameters(b, random_parameters(tb, n))
    for _ in range(4):
        send_table(tb)
        tb.job(a, b, flags=LOOK_UP)
        tb.job(a, b, flags=FINISH)
        tb.job(a, b, flags=JobFlag.TABLE)  # TABLE has no effect on sums
    # Each column has a constant result, so that every entry is looked up.
    width = min(n, 256)
    a, b = tb.place(A, np.zeros((1, 1), np.int8)), tb.place(B, tb.random(width, 1))
    tb.load(a, b)
    for first in range(0, 256, width):
        entries = random_parameters(tb, width)
        entries["low"] = entries["high"] = np.arange(first, first + width) % 256
        tb.load_parameters(b, entries)
        tb.job(a, b, flags=LOOK_UP)


@core_test(skip=not _HAS_EPILOGUE, stall=40)
async def epilogue_aborts(tb):
    """Aborts and chains of jobs with int8 results; later jobs are correct."""
    rows, cols, depth = tb.config.rows, tb.config.cols, tb.config.depth
    k = min(tb.max_k(tiles=2), 16 * depth)
    statuses = {Status(0), Status.ABORTED}
    for _ in range(6):
        a, b = send_with_epilogue(tb, 2 * rows, cols + 1, k, statuses=statuses)
        tb.job(a, b, flags=FINISH, statuses=statuses)
        await tb.cycles(int(tb.rng.integers(4 * k // depth + 60)))
        await tb.abort()
        send_with_epilogue(tb, rows + 1, 2 * cols, depth + 1, statuses=statuses)
    await tb.wait_done()
    # The epilogue of one job takes the sums that the previous job kept.
    tb.multiply(tb.random(rows, depth), tb.random(cols, depth), flags=JobFlag.KEEP | FINISH)
    placed = tb.place(A, tb.random(rows, depth)), tb.place(B, tb.random(cols, depth))
    tb.load_parameters(placed[1], random_parameters(tb, cols))
    tb.load(*placed, flags=LoadFlag.CONTINUE)
    tb.job(*placed, flags=JobFlag.ACCUMULATE | FINISH)


@core_test(stall=20)
async def unsupported(tb):
    """Unsupported commands: a job is rejected, a load counts as an error."""
    flags = [JobFlag.REQUANTIZE] * (not _HAS_EPILOGUE) + [JobFlag.TABLE] * (not _HAS_TABLE)
    for flag in flags:
        tb.reject(flags=flag)
        send_random(tb)
    if _HAS_EPILOGUE:
        for size in "mnk":
            tb.reject(flags=FINISH, **{size: 0})
            send_with_epilogue(tb, 1, 1, 1)
    await tb.wait_done()
    missing = [operand for operand in range(6) if operand not in memories(tb.config)]
    for operand in missing:
        tb.send(Load(operand, 0, 1, 1, 1).pack())
    send_random(tb)
    await tb.wait_done()
    errors = await tb.register(REGISTERS.index("errors"))
    assert errors == len(missing), f"register errors must be {len(missing)}, not {errors}"
