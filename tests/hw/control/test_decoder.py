"""The command decoder, at every width of the command stream."""

import random

import pytest
from tiers import quick

from verif.amaranth_bench import checker, plain, put, receive, send, simulate, ticks
from weft.commands import HEADER_BYTES, Job, JobFlag, Load, Region
from weft.config import Config
from weft.geometry import memories, operands
from weft.hw.control.decoder import CommandDecoder, JobHeader, LoadHeader

WIDTHS = [1, 4, 16, 32, 64]
JOB = Job(m=3, n=5, k=7, a_page=1, a_pitch=2, a_pages=3, b_page=4, b_pitch=5, b_pages=6, tag=0xABCD)
LOAD = Load(operand=1, page=9, pitch=2, panels=3, words=4)


def words(data, width):
    """``data`` as stream words; the last one is padded with zeros."""
    return [
        int.from_bytes(data[n : n + width].ljust(width, b"\0"), "little")
        for n in range(0, len(data), width)
    ]


def fields(shape, header):
    return plain(shape.from_bits(int.from_bytes(header.pack(), "little")))


def payload(rng, width, count):
    return [rng.randrange(1 << 8 * width) for _ in range(count)]


class Bench:
    """Sends commands and records the outputs in order, as (kind, content)."""

    def __init__(self, width, *, idle=0, stall=0, geometries=None):
        geometries = geometries or dict(zip((Region.A, Region.B), operands(Config()), strict=True))
        self.dut = CommandDecoder(
            geometries=geometries, bytes_in=width, header_bits=[8] * HEADER_BYTES
        )
        self.width, self.idle, self.stall = width, idle, stall
        self.outputs = []
        self.idles = []

    def run(self, stream, *, jobs, sizes):
        """``sizes``: number of words of each load."""
        dut = self.dut
        rng = random.Random(5)

        async def source(ctx):
            await send(ctx, dut.commands, stream, idle=self.idle)
            await ticks(ctx, 6)  # the checks of a load

        async def take_jobs(ctx):
            for n in range(jobs):
                [job] = await receive(ctx, dut.job, 1, stall=self.stall, seed=n)
                self.outputs.append(("job", job))

        async def take_loads(ctx):
            for size in sizes:
                [load] = await receive(ctx, dut.load, 1, stall=self.stall, seed=size)
                self.outputs.append(("load", load))
                for n in range(size):
                    put(ctx, dut.last, n == size - 1)
                    while rng.random() < self.stall:
                        await ctx.tick()
                    self.outputs += [("word", x) for x in await receive(ctx, dut.words, 1)]

        async def watch(ctx):
            while True:
                _, _, error, idle = await ctx.tick().sample(dut.error, dut.idle)
                self.idles.append(idle)
                if error:
                    self.outputs.append(("error", None))

        streams = ("commands", "job", "load", "words")
        simulate(
            dut, source, take_jobs, take_loads,
            background=[watch, *(checker(getattr(dut, name), name) for name in streams)],
        )


@pytest.mark.parametrize("idle, stall", [
    (0, 0), (0.5, 0.9),
    *(pytest.param(*flow, marks=pytest.mark.slow) for flow in ((0.9, 0.5), (0, 0.5), (0.5, 0))),
])
@pytest.mark.parametrize("width", WIDTHS)
def test_outputs_come_in_the_order_of_the_commands(width, idle, stall):
    rng = random.Random(width)
    bench = Bench(width, idle=idle, stall=stall)
    stream, expected, sizes = [], [], []
    for n in range(8):
        if n % 3:
            size = rng.randint(1, 5)
            load = Load(n % 2, rng.randrange(99), rng.randrange(99), 1 + n, rng.randint(1, 9))
            load_words = payload(rng, width, size)
            stream += words(load.pack(), width) + load_words
            expected.append(("load", fields(LoadHeader, load)))
            expected += [("word", word) for word in load_words]
            sizes.append(size)
        else:
            stream += words(JOB.pack(), width)
            expected.append(("job", fields(JobHeader, JOB)))
    bench.run(stream, jobs=3, sizes=sizes)
    assert bench.outputs == expected
    assert bench.idles[-1] == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_a_header_takes_its_words_and_one_cycle(width):
    count = max(1, 32 // width)
    bench = Bench(width)
    bench.run(words(JOB.pack(), width) * 2, jobs=2, sizes=[])
    # Idle before the first word of each header, then busy until the job is taken.
    assert bench.idles[: 2 * count + 3] == [1, *[0] * count] * 2 + [1]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_load_takes_three_cycles_more_and_one_for_each_word(width):
    count = max(1, 32 // width)
    bench = Bench(width)
    bench.run(words(LOAD.pack(), width) + [1, 2, 3] + words(JOB.pack(), width), jobs=1, sizes=[3])
    busy = count - 1 + 3 + 1 + 3
    assert bench.idles[: busy + 3] == [1, *[0] * busy, 1, 0]


def broken(header, **bytes_at):
    data = bytearray(header.pack())
    for place, value in bytes_at.items():
        data[int(place[1:])] = value
    return bytes(data)


@pytest.mark.parametrize("data", [
    pytest.param(broken(JOB, _0=0), id="opcode-0"),
    pytest.param(broken(JOB, _0=3), id="opcode-3"),
    pytest.param(broken(JOB, _1=1), id="version-1-of-a-job"),
    pytest.param(broken(LOAD, _1=0), id="version-0-of-a-load"),
    pytest.param(broken(LOAD, _2=2), id="operand-2"),
    pytest.param(broken(LOAD, _2=0x81), id="operand-129"),
    pytest.param(Load(operand=0, page=0, pitch=1, panels=0, words=1).pack(), id="no-panels"),
    pytest.param(Load(operand=0, page=0, pitch=0, panels=257, words=1).pack(), id="many-panels"),
    pytest.param(Load(operand=0, page=0, pitch=0, panels=1, words=4097).pack(), id="many-words"),
    pytest.param(Load(operand=0, page=0, pitch=1, panels=1, words=0).pack(), id="no-words"),
])
@pytest.mark.parametrize("width", quick(1, [16, 1, 64]))
def test_rejects_invalid_commands(data, width):
    bench = Bench(width)
    bench.run(words(data, width) + words(JOB.pack(), width), jobs=1, sizes=[])
    assert bench.outputs == [("error", None), ("job", fields(JobHeader, JOB))]


@pytest.mark.parametrize("config, supported", [
    (Config(requantize="none"), [0, 1]), (Config(activation="none"), [0, 1, 2]),
    (Config(), [0, 1, 2, 3]), (Config(dtype="bf16"), [0, 1, 2, 4]),
    (Config(dtype="bf16", activation="none"), [0, 1, 4]),
    (Config(dtype="bf16", c_words=0), [0, 1, 2]),
])
@pytest.mark.parametrize("operand", range(6))
def test_accepts_loads_of_existing_buffers(config, supported, operand):
    load = Load(operand=operand, page=0, pitch=1, panels=1, words=1)
    bench = Bench(16, geometries=memories(config))
    accepted = operand in supported
    bench.run(words(load.pack(), 16) + [7] * accepted, jobs=0, sizes=[1] * accepted)
    expected = [("load", fields(LoadHeader, load)), ("word", 7)] if accepted else [("error", None)]
    assert bench.outputs == expected


def test_accepts_jobs_with_any_flags():
    # The job table rejects unsupported flags, and the job ends with a status.
    job = Job(0, 0, 0, 0, 0, 0, 0, 0, 0, flags=JobFlag(0xFFC0))
    bench = Bench(16)
    bench.run(words(job.pack(), 16), jobs=1, sizes=[])
    assert bench.outputs == [("job", fields(JobHeader, job))]
