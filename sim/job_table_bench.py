"""A job table on the bench: jobs to push, and what it says of them and of loads."""

from weft.commands import Job, JobFlag, Region
from weft.geometry import Operand
from weft.hw.control.headers import JobHeader, LoadHeader
from weft.hw.control.job_table import JobTable
from weft.sim.amaranth_bench import checker, plain, put, receive, send, simulate, ticks

__all__ = [
    "ALL", "FED", "FLOAT", "PLAIN", "START", "conflicts", "header", "job", "pull", "pulse", "push",
    "retire", "run",
]

A = Operand(3, 2, 128, 16)  # 8 pages: up to 24 rows, K up to 256
B = Operand(4, 2, 128, 16)  # 8 pages: up to 32 columns
FED = JobFlag.FEED_A | JobFlag.FEED_B
PLAIN = FED | JobFlag.ACCUMULATE | JobFlag.KEEP
ALL = PLAIN | JobFlag.REQUANTIZE | JobFlag.TABLE
START = JobFlag.PRELOAD | JobFlag.BROADCAST
C = Operand(4, 1, 32, 16, page=1, size=4)  # 32 words
MEMORIES = {Region.A: A, Region.B: B}
FINISHES = JobFlag.REQUANTIZE, JobFlag.TABLE
# A core that starts from C, of three tiles a pass and another result path.
FLOAT = {
    "geometries": {**MEMORIES, Region.C: C},
    "supported_flags": PLAIN | START | JobFlag.ROUND | JobFlag.CLAMP,
    "epilogue_flags": (JobFlag.ROUND, JobFlag.CLAMP), "slots": 3,
}


def job(tag=0, flags=0, **fields):
    values = {"m": 1, "n": 2, "k": 3, "a_page": 1, "a_pitch": 1, "a_pages": 2}
    values |= {"b_page": 3, "b_pitch": 2, "b_pages": 4}
    return Job(**{**values, **fields}, tag=tag, flags=JobFlag(flags))


def header(command):
    shape = JobHeader if isinstance(command, Job) else LoadHeader
    return plain(shape.from_bits(int.from_bytes(command.pack(), "little")))


def run(bench, jobs=4, **options):
    plain = {"geometries": MEMORIES, "supported_flags": ALL, "epilogue_flags": FINISHES, "slots": 1}
    table = JobTable(jobs=jobs, **plain | options)
    simulate(table, lambda ctx: bench(ctx, table), background=[checker(table.pull, "pull")])


async def push(ctx, table, *jobs):
    for one in jobs:
        await send(ctx, table.push, [header(one)])
        await ctx.tick()  # in which the header is still there


async def pull(ctx, table):
    """A job; and whether it is rejected, as is known in the cycle after."""
    [one] = await receive(ctx, table.pull, 1)
    return {**one, "rejected": ctx.get(table.rejected)}


async def conflicts(ctx, table, load):
    """Whether a load has to wait, three cycles after it came."""
    put(ctx, table.load, header(load))
    await ticks(ctx, 3)
    return ctx.get(table.conflict)


async def retire(ctx, table):
    """The oldest job ends: what is said of loads knows it a cycle after the table."""
    await pulse(ctx, table.retire)
    await ctx.tick()


async def pulse(ctx, port, value=1):
    put(ctx, port, value)
    await ctx.tick()
    ctx.set(port, [0, 0] if isinstance(value, list) else 0)
