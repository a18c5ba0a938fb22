"""Results finished on the chip: each column by its parameters, the next job's loaded meanwhile."""

import cocotb
import numpy as np

from weft.commands import Job, JobFlag, Load, LoadFlag, Status
from weft.geometry import memories
from weft.golden import scaled
from weft.registers import REGISTERS
from weft.sim.bench.core_testbench import TABLE, A, B, CoreTestbench, the_config
from weft.sim.bench.products import send_random

__all__ = ["breaks", "edges", "finished", "random_finished", "refused", "reloaded", "tables"]

_NOTHING = np.empty((0, 0))
_FINISHES = the_config().requantize != "none"
_LOOKS_UP = _FINISHES and the_config().activation != "none"
_DTYPE = [
    ("bias", "<i4"), ("multiplier", "<u4"), ("shift", "i1"), ("b_zero", "i1"), ("zero", "<i2"),
    ("low", "<i2"), ("high", "<i2"),
]


def draw(s, columns, reach=1 << 16) -> np.ndarray:
    """What finishes columns whose sums are within ``reach``: a record for each."""
    rng, entries = s.rng, np.zeros(columns, _DTYPE)
    entries["bias"] = rng.integers(-reach, reach, columns)
    if s.config.requantize == "onnx":
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


def golden(s, sums, a, entries, table=None) -> np.ndarray:
    """The bytes that ``sums`` [M, N] become."""
    total = sums.astype(np.int64) + entries["bias"]
    if s.config.b_zero_point != "none":
        total -= a.sum(axis=1, dtype=np.int64)[:, None] * entries["b_zero"]
    acc = total.astype(np.int32)
    mode, multiplier = s.config.requantize, entries["multiplier"]
    if mode == "onnx":
        y = scaled(acc, scale=multiplier.view(np.float32), mode=mode)
    else:
        y = scaled(acc, multiplier.astype(np.int64), entries["shift"], mode=mode)
    y = np.clip(y.astype(np.int64) + entries["zero"], entries["low"], entries["high"]) & 255
    return (y if table is None else table[y]).astype(np.uint8)


def send_table(s) -> np.ndarray:
    """Load a random table."""
    table = s.rng.integers(0, 256, 256, dtype=np.uint8)
    s.load_words(Load(TABLE, 0, 1, 1, 256), table[None].view(np.int8))
    return table


def send_finished(s, m, n, k, *, table=None, statuses=frozenset({Status(0)})):
    """A product whose results are bytes; its parameters, like its operands, go before it."""
    m, n, k = s.fit(m, n, k)
    a, b = s.place(A, s.random(m, k)), s.place(B, s.random(n, k))
    entries = draw(s, n)
    parts = [lambda: s.load(a), lambda: s.load(b), lambda: s.load_parameters(b, entries)]
    for part in s.rng.permutation(3):
        parts[part]()
    send_job(s, a, b, entries, table=table, statuses=statuses)
    return a, b, entries


def send_job(s, a, b, entries, *, table=None, **options):
    """A job on what lies in the buffers."""
    flags = JobFlag.REQUANTIZE | (JobFlag(0) if table is None else JobFlag.TABLE)
    s.job(a, b, flags=flags, finish=lambda x: golden(s, x, a.matrix, entries, table), **options)


def any_table(s, table):
    """The table or none."""
    return table if _LOOKS_UP and s.rng.random() < 0.5 else None


@cocotb.test(skip=not _FINISHES)
@cocotb.parametrize(idle=(0, 50, 90), stall=(0, 50, 90))
async def finished(dut, idle, stall):
    """Bytes and sums by turns, whole tiles and ragged ones, however the streams run."""
    s = await CoreTestbench.start(dut, idle=idle, stall=stall)
    rows, cols, depth = s.config.rows, s.config.cols, s.config.depth
    table = send_table(s) if _LOOKS_UP else None
    for m, n, k in ((rows + 1, cols + 1, 2 * depth + 1), (1, 1, 1), (rows, 2 * cols, depth)):
        send_finished(s, m, n, k, table=any_table(s, table))
        send_random(s)
        send_finished(s, n, m, k, table=any_table(s, table))
    # One result each, one job right behind the other: sums wait until bytes have left.
    a, b, entries = send_finished(s, 1, 1, 1)
    for turn in range(8):
        if turn % 3 == 1:
            s.job(a, b)
        else:
            send_job(s, a, b, entries, table=any_table(s, table))
    await s.finish()


@cocotb.test(skip=not _FINISHES)
async def random_finished(dut):
    """Jobs of all kinds and shapes as they come."""
    s = await CoreTestbench.start(dut, idle=10, stall=10)
    table = send_table(s) if _LOOKS_UP else None
    for _ in range(20):
        if s.rng.random() < 0.3:
            send_random(s)
        else:
            m, n = (int(s.rng.integers(1, 3 * e + 1)) for e in (s.config.rows, s.config.cols))
            send_finished(s, m, n, int(s.rng.integers(1, 60)), table=any_table(s, table))
    await s.finish()


@cocotb.test(skip=not _FINISHES)
async def edges(dut):
    """Sums and biases at their extremes, and results that wrap on their way into int32."""
    s = await CoreTestbench.start(dut, stall=20)
    m, n, k = s.fit(s.config.rows, 2 * s.config.cols, 7)
    for value in (-128, 127):
        a = s.place(A, np.full((m, k), value, np.int8))
        b = s.place(B, np.full((n, k), -128, np.int8))
        entries = draw(s, n)
        entries["bias"] = s.rng.choice([-(1 << 31), (1 << 31) - 1, 0], n)
        if s.config.requantize != "onnx":
            entries["shift"] = s.rng.choice([-31, -30, -1, 0, 1, 30], n)
            entries["multiplier"][s.rng.random(n) < 0.2] = 0
        s.load(a)
        s.load(b)
        s.load_parameters(b, entries)
        send_job(s, a, b, entries)
        s.job(a, b)
    await s.finish()


@cocotb.test(skip=not _FINISHES)
async def reloaded(dut):
    """Parameters for the next job wait for the job that uses those pages, and only for it."""
    s = await CoreTestbench.start(dut, stall=60)
    rows, cols = s.config.rows, s.config.cols
    m, n, k = s.fit(2 * rows, 2 * cols, 3 * s.config.depth)
    a, b = s.place(A, s.random(m, k)), s.place(B, s.random(n, k), page=0, gap=0)
    s.load(a)
    s.load(b)
    for _ in range(6):
        entries = draw(s, n)
        s.load_parameters(b, entries)
        for _ in range(int(s.rng.integers(1, 4))):
            send_job(s, a, b, entries)
    # Each job's parameters alone, in pages by turns: they load while the one before runs.
    pages = [page for page in (0, b.pages) if page + b.pages <= s.geometry[B].pages]
    for turn in range(6):
        there = s.place(B, b.matrix, page=pages[turn % len(pages)], gap=0)
        s.load(there)
        entries = draw(s, n)
        s.load_parameters(there, entries)
        send_job(s, a, there, entries)
    await s.finish()


@cocotb.test(skip=not _LOOKS_UP)
async def tables(dut):
    """A table serves the jobs behind it until the next one is loaded; all 256 entries are met."""
    s = await CoreTestbench.start(dut, stall=60)
    m, n, k = s.fit(2 * s.config.rows, 2 * s.config.cols, 2)
    a, b = s.place(A, s.random(m, k)), s.place(B, s.random(n, k))
    entries = draw(s, n)
    s.load(a)
    s.load(b)
    s.load_parameters(b, entries)
    for _ in range(4):
        table = send_table(s)
        send_job(s, a, b, entries, table=table)
        send_job(s, a, b, entries)
        s.job(a, b, flags=JobFlag.TABLE)  # of sums it makes nothing
    # One column after the other is a constant, each its own.
    width = min(n, 256)
    a, b = s.place(A, np.zeros((1, 1), np.int8)), s.place(B, s.random(width, 1))
    s.load(a)
    s.load(b)
    for first in range(0, 256, width):
        entries = draw(s, width)
        entries["low"] = entries["high"] = np.arange(first, first + width) % 256
        s.load_parameters(b, entries)
        send_job(s, a, b, entries, table=table)
    await s.finish()


@cocotb.test(skip=not _FINISHES)
async def breaks(dut):
    """Aborts and chains among jobs that are finished: those behind them are right."""
    s = await CoreTestbench.start(dut, stall=40)
    rows, cols, depth = s.config.rows, s.config.cols, s.config.depth
    k = min(s.most_k(tiles=2), 16 * depth)
    either = {Status(0), Status.ABORTED}
    for _ in range(6):
        a, b, entries = send_finished(s, 2 * rows, cols + 1, k, statuses=either)
        send_job(s, a, b, entries, statuses=either)
        await s.cycles(int(s.rng.integers(4 * k // depth + 60)))
        await s.abort()
        send_finished(s, rows + 1, 2 * cols, depth + 1, statuses=either)
    await s.finish()
    # Sums that one job kept are finished by the next.
    a, b = s.random(rows, depth), s.random(cols, depth)
    s.multiply(a, b, flags=JobFlag.KEEP | JobFlag.REQUANTIZE)
    first, more = s.numbers.product(a, b), s.random(rows, depth)
    placed = s.place(A, more), s.place(B, s.random(cols, depth))
    entries = draw(s, cols)
    s.load_parameters(placed[1], entries)
    for side in placed:
        s.load(side, flags=LoadFlag.CONTINUE)
    s.job(
        *placed, flags=JobFlag.ACCUMULATE | JobFlag.REQUANTIZE, start=first,
        finish=lambda sums: golden(s, sums, np.hstack([a, more]), entries),
    )
    await s.finish()


@cocotb.test()
async def refused(dut):
    """What the core does not have is refused: the job with an answer, the load as an error."""
    s = await CoreTestbench.start(dut, stall=20)
    lacks = [JobFlag.REQUANTIZE] * (not _FINISHES) + [JobFlag.TABLE] * (not _LOOKS_UP)
    for flag in lacks:
        s.send(Job(1, 1, 1, 0, 1, 1, 0, 1, 1, tag=s.tag(), flags=flag).pack())
        s.expect(_NOTHING, {Status.REJECTED})
        send_random(s)
    if _FINISHES:
        for shape in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
            flags = JobFlag.REQUANTIZE
            s.send(Job(*shape, 0, 1, 1, 0, 1, 1, tag=s.tag(), flags=flags).pack())
            s.expect(_NOTHING, {Status.REJECTED})
            send_finished(s, 1, 1, 1)
    await s.finish()
    missing = [operand for operand in range(6) if operand not in memories(s.config)]
    for operand in missing:
        s.send(Load(operand, 0, 1, 1, 1).pack())
    send_random(s)
    await s.finish()
    errors = await s.register(REGISTERS.index("errors"))
    assert errors == len(missing), f"register errors must be {len(missing)}, not {errors}"
