"""Helpers for benches of the job table: push and pull jobs, query conflicts of loads."""

from verif.amaranth_bench import checker, plain, pulse, put, receive, send, simulate, ticks
from weft.commands import Job, JobFlag, Region
from weft.geometry import Operand
from weft.hw.control.decoder import JobHeader, LoadHeader
from weft.hw.control.job_table import JobTable

__all__ = [
    "ALL", "FED", "FLOAT", "PLAIN", "START", "conflicts", "header", "job", "pull", "push", "retire",
    "run",
]

A = Operand(3, 2, 128, 16)  # 8 pages: up to 24 rows, K up to 256
B = Operand(4, 2, 128, 16)  # 8 pages: up to 32 columns
FED = JobFlag.FEED_A | JobFlag.FEED_B
PLAIN = FED | JobFlag.ACCUMULATE | JobFlag.KEEP
ALL = PLAIN | JobFlag.REQUANTIZE | JobFlag.TABLE
START = JobFlag.PRELOAD | JobFlag.BROADCAST
C = Operand(4, 1, 32, 16, page=1, size=4)  # 32 words
MEMORIES = {Region.A: A, Region.B: B}
EPILOGUE = JobFlag.REQUANTIZE, JobFlag.TABLE
# A core with a C buffer, three tiles in a pass, and the BF16 epilogue.
FLOAT = {
    "geometries": {**MEMORIES, Region.C: C},
    "supported_flags": PLAIN | START | JobFlag.ROUND | JobFlag.CLAMP,
    "epilogue_flags": (JobFlag.ROUND, JobFlag.CLAMP), "slots": 3,
}


def job(tag=0, flags=0, **fields):
    """A job with default fields."""
    values = {"m": 1, "n": 2, "k": 3, "a_page": 1, "a_pitch": 1, "a_pages": 2}
    values |= {"b_page": 3, "b_pitch": 2, "b_pages": 4}
    return Job(**{**values, **fields}, tag=tag, flags=JobFlag(flags))


def header(command):
    """The header of a command as the hardware's struct, in Python ints."""
    shape = JobHeader if isinstance(command, Job) else LoadHeader
    return plain(shape.from_bits(int.from_bytes(command.pack(), "little")))


def run(bench, jobs=4, **options):
    """Run ``bench(ctx, table)`` on a new job table."""
    defaults = {
        "geometries": MEMORIES, "supported_flags": ALL, "epilogue_flags": EPILOGUE, "slots": 1,
    }
    table = JobTable(jobs=jobs, **defaults | options)
    simulate(table, lambda ctx: bench(ctx, table), background=[checker(table.pull, "pull")])


async def push(ctx, table, *jobs):
    """Push jobs."""
    for one in jobs:
        await send(ctx, table.push, [header(one)])
        await ctx.tick()  # the header must stay for one more cycle


async def pull(ctx, table):
    """Pull a job; adds ``rejected``, which is valid in the next cycle."""
    [one] = await receive(ctx, table.pull, 1)
    return {**one, "rejected": ctx.get(table.rejected)}


async def conflicts(ctx, table, load):
    """Whether a load conflicts with a job; valid three cycles after its header."""
    put(ctx, table.load, header(load))
    await ticks(ctx, 3)
    return ctx.get(table.conflict)


async def retire(ctx, table):
    """Retire the oldest job; the conflict of a load follows a cycle later."""
    await pulse(ctx, table.retire)
    await ctx.tick()
