"""A bench of the list reader: models of the memory, of jobs and of loads, and what they saw."""

import functools
import random
from dataclasses import dataclass, field

from amaranth.hdl import Value
from side_port import SidePort, hardware_fields

from verif.amaranth_bench import checker, plain, put, simulate, ticks
from weft.golden.network_core.memory import ListFault, MemoryArea
from weft.golden.network_core.runner import ListHead
from weft.hw.network_core.lists.list_reader import ListReader
from weft.network_core.descriptors import ListEnd, ListJob, ListLoad, join
from weft.network_core.latencies import lead

__all__ = ["ListRun", "Timing", "descriptors_of", "run_lists"]

_list_reader = functools.cache(ListReader)  # elaborated once for all lists of a core


@dataclass(frozen=True)
class Timing:
    """Cycles of the models around the list reader.

    Attributes
    ----------
    jobs, loads : (int, int)
        Least and most cycles of a job, and of a load.
    stall : float
        Probability that a read, the log, or a load has to wait in a cycle.
    log_stall : float
        Probability that the log has to wait, if that is more.
    latency : int
        Of a read.
    """

    jobs: tuple = (1, 40)
    loads: tuple = (1, 30)
    stall: float = 0.0
    log_stall: float = 0.0
    latency: int = 4


@dataclass
class ListRun:
    """What happened in one list.

    Attributes
    ----------
    list, log : int
        Addresses in the form of lists.
    abort, error_at : int, optional
        Cycles, from ``begin``, of an abort and of an address error of a job.
    load_error_at : int, optional
        The load, by number, whose access is refused.
    starts, ends, load_starts, load_ends : list of (int, dict) or of int
        The cycles of jobs and loads, from the cycle after ``begin``; with their fields.
    status : dict
    reads : list of int
    finished_at : int
    """

    list: int
    log: int
    abort: int | None = None
    error_at: int | None = None
    load_error_at: int | None = None
    starts: list = field(default_factory=list)
    ends: list = field(default_factory=list)
    load_starts: list = field(default_factory=list)
    load_ends: list = field(default_factory=list)
    status: dict = field(default_factory=dict)
    reads: list = field(default_factory=list)
    finished_at: int = -1


def descriptors_of(config, memory, first, kind, base=0, limit=None):
    """All (descriptor, waits) of a kind that a head of the golden model finds before its end."""
    area = MemoryArea(config, memory, base, config.words if limit is None else limit)
    head, found = ListHead(config, area, join(first, config.banks), kind), []
    while True:
        try:
            descriptor, waits = head.peek()
        except ListFault:
            return found
        if isinstance(descriptor, ListEnd):
            return found
        found.append((descriptor, waits))
        head.advance()


def run_lists(config, memory, runs, *, base=0, limit=None, timing=Timing(), seed=0, cycles=20_000):
    """Execute lists one after the other on one list reader; checks the order of all events.

    ``memory`` (bytearray) gets the log. A job may start only after all jobs before it and its
    loads, a load only after its jobs; both have the fields that the golden model finds.
    """
    rng = random.Random(seed)
    depth, dut = config.array.depth, _list_reader(config)
    vectors = [
        int.from_bytes(memory[n * depth : (n + 1) * depth], "little") for n in range(config.vectors)
    ]
    port = SidePort(config, vectors, stall=timing.stall, latency=timing.latency, seed=seed)
    raw_job = Value.cast(dut.job.fields)
    current = []  # the running ListRun, and the descriptors that are expected
    cycle = 0  # since the one after ``begin``

    async def count(ctx):
        nonlocal cycle
        async for _, _, begin in ctx.tick().sample(dut.begin.valid):
            cycle = 0 if begin else cycle + 1

    async def bench(ctx):
        put(ctx, dut.window.base, base)
        put(ctx, dut.window.limit, config.words if limit is None else limit)
        for run in runs:
            await ticks(ctx, 12)  # reads of the list before
            port.reads = run.reads
            current[:] = [run, *(
                descriptors_of(config, memory, run.list, kind, base, limit)
                for kind in (ListJob, ListLoad)
            )]
            put(ctx, dut.begin, {"valid": 1} | {
                name: {"bank": address & 0xFF, "word": address >> 8 & 2 * config.words - 1}
                for name, address in (("list", run.list), ("log", run.log))
            })
            await ctx.tick()
            ctx.set(dut.begin.valid, 0)
            while not ctx.get(dut.finished):
                ctx.set(dut.abort, cycle == run.abort)
                await ctx.tick()
            ctx.set(dut.abort, 0)
            run.finished_at = cycle
            run.status = plain(ctx.get(dut.status))
            assert ctx.get(dut.halt)
            current.clear()

    async def execute_jobs(ctx):
        # Cycles to the end of the job whose output runs; the job whose steps run, or None.
        left, stored_job, steps = None, 0, None
        early = lead(config)
        output = dut.output_job if early else dut.job
        taken = 0  # jobs that have started
        while True:
            run = current[0] if current else None
            ctx.set(dut.job_done, left == 0)
            if early:
                ctx.set(dut.job_ending, left == early)
            failing = run is not None and run.error_at is not None and cycle >= run.error_at
            ctx.set(dut.address_error, left is not None and failing)
            ended, ending, at = left == 0, left == early, cycle
            _, _, start, job, begin, output_job, halt = await ctx.tick().sample(
                dut.job.start, raw_job, output.start, Value.cast(output.fields), dut.halt
            )
            if halt:
                left, steps, taken = None, None, 0
                continue
            if left is not None and not begin:
                assert output_job == stored_job, "the job must be stable until it ends"
            left = None if ended or left is None else left - 1
            if ended:
                run.ends.append(at)
            if start:
                assert steps is None and taken - len(run.ends) <= (1 if early else 0)
                descriptor, waits = current[1][taken]
                assert waits <= len(run.load_ends)
                steps, taken = job, taken + 1
                fields = plain(dut.job.fields.shape().from_bits(job))
                assert fields == hardware_fields(config, descriptor, base)
            if begin:
                assert left is None and len(run.ends) == len(run.starts)
                assert output_job == steps
                stored_job = output_job
                run.starts.append(at)
                left = rng.randint(*timing.jobs) - 1 + early
            if ending or (ended and not early):
                steps = None

    async def execute_loads(ctx):
        left = None
        while True:
            run = current[0] if current else None
            done = left == 0
            ready = (left is None or done) and rng.random() >= timing.stall
            failed = done and run and run.load_error_at == len(run.load_ends)
            ctx.set(dut.load.done, done and not failed)
            ctx.set(dut.load.address_error, bool(failed))
            ctx.set(dut.load.request.ready, ready and not failed)
            at = cycle
            _, _, valid, load, halt = await ctx.tick().sample(
                dut.load.request.valid, dut.load.request.payload, dut.halt
            )
            if halt:
                left = None
                continue
            if failed:
                left = -1  # for ever
            if done and not failed:
                run.load_ends.append(at)
                left = None
            elif left:
                left -= left > 0
            if valid and ready and not failed:
                descriptor, waits = current[2][len(run.load_starts)]
                assert waits <= len(run.ends)
                assert plain(load) == hardware_fields(config, descriptor, base)
                run.load_starts.append(at)
                left = rng.randint(*timing.loads) - 1

    async def write_log(ctx):
        while True:
            ready = rng.random() >= max(timing.stall, timing.log_stall)
            ctx.set(dut.writes.ready, ready)
            _, _, valid, write = await ctx.tick().sample(dut.writes.valid, dut.writes.payload)
            if valid and ready:
                number = write.address.word * config.banks + write.address.bank
                low, high = base * config.banks, (limit or config.words) * config.banks
                assert low <= number < high, "the log must lie within the limits"
                assert write.enable == (1 << depth) - 1
                memory[number * depth : (number + 1) * depth] = write.data.to_bytes(
                    depth, "little"
                )

    async def serve(ctx):
        await port.serve(ctx, dut)

    simulate(
        dut, bench, limit=cycles,
        background=[
            count, serve, execute_jobs, execute_loads, write_log,
            checker(dut.reads.request, "reads", dut.halt),
            checker(dut.load.request, "load", dut.halt), checker(dut.writes, "writes", dut.halt),
        ],
    )
    low, high = base * config.banks, (limit or config.words) * config.banks
    for run in runs:
        assert all(low <= n and n + 1 <= high for n in run.reads)
    return runs
