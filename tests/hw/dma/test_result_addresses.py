"""The result address generator: results go to their addresses, and padding is not written."""

import random

import pytest

from verif.amaranth_bench import plain, put, send, simulate, ticks
from weft.commands import Job, JobFlag, Status
from weft.descriptors import Store
from weft.hw.dma.axi import BURST
from weft.hw.dma.result_addresses import OPERAND_ERROR, ResultAddressGenerator

ROWS, COLS, LANES = 3, 4, 2
KINDS = {  # sizes of results, units, bytes of a word
    "one": ([4], [4], 16),
    "chunks": ([4, 1], [8, 2], 16),
    "alike": ([4, 2], [4, 4], 4),
    "beats": ([4, 2], [8, 4], 8),
}
SIZE = 1 << 14


def results(rng, job, size, width, memory, store, keep=None):
    """The words of a job, at most ``keep`` and not all; writes their results to ``memory``."""
    data, addresses = bytearray(), []
    for i in range(0, job.m, ROWS):
        for j in range(0, job.n, COLS):
            for row in range(i, min(i + ROWS, job.m)):
                count = min(COLS, job.n - j)
                row_addr = store.address + row * store.stride + j * size
                slots = -(-count // LANES) * LANES * size
                addresses += [row_addr + n if n < count * size else None for n in range(slots)]
                data += rng.randbytes(slots)
    if keep is not None:
        keep = min(keep, -(-len(data) // width) - 1)
    for n, addr in enumerate(addresses[: None if keep is None else keep * width]):
        if addr is not None:
            memory[addr] = data[n]
    data += bytes(-len(data) % width)
    words = [int.from_bytes(data[n : n + width], "little") for n in range(0, len(data), width)]
    return words[:keep]


def write_beats(memory, beats, width):
    """Write the beats to ``memory``, burst by burst; returns tag and status of each job."""
    ends, burst = [], []
    for beat in beats:
        if beat["no_data"]:
            assert beat["last"] and not burst
        else:
            burst.append(beat)
        if beat["last"] and burst:
            assert len(burst) == beat["index"] + 1 <= BURST
            first = beat["addr"] // width
            assert beat["addr"] % width == 0 and first // BURST == (first + len(burst) - 1) // BURST
            for n, part in enumerate(burst):
                for byte in range(width):
                    if part["strb"] >> byte & 1:
                        memory[beat["addr"] + n * width + byte] = part["data"] >> 8 * byte & 255
            burst = []
        if beat["last"] and beat["job_last"]:
            ends.append((beat["tag"], beat["status"]))
    assert not burst
    return ends


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("idle", [0, 0.5])
def test_writes_results(kind, idle):
    sizes, units, width = KINDS[kind]
    rng = random.Random(3)
    dut = ResultAddressGenerator(
        rows=ROWS, cols=COLS, lanes=LANES, sizes=sizes, units=units, data_bytes=width,
        narrow_flags=JobFlag.ROUND, target="generic",
    )
    memory = bytearray(rng.randbytes(SIZE))
    expected = bytearray(memory)
    fields, words, ends, addr = [], [], [], 0
    for tag in range(12):
        narrow = len(sizes) > 1 and tag % 2
        size, unit = sizes[narrow], units[narrow]
        m, n = rng.randrange(1, 2 * ROWS + 2), rng.randrange(1, 3 * COLS + 1)
        stride = -(-n * size // unit) * unit + rng.choice([0, unit])
        job = Job(m, n, 1, *[1] * 6, tag=tag, flags=JobFlag.ROUND if narrow else JobFlag(0))
        store = Store(job, addr, stride)
        if tag == 5:  # from the last row to the first
            store = Store(job, addr + stride * (m - 1), -stride)
        addr = -(-(addr + stride * m) // 8) * 8 + rng.choice([0, 8])
        packed = store.pack()
        field = [int.from_bytes(packed[4 * i : 4 * i + 4], "little") for i in (0, 1, 3, 8, 9)]
        operand_error = tag % 3 == 1
        field[2] = field[2] & ~(1 << OPERAND_ERROR) | operand_error << OPERAND_ERROR
        fields += field
        status = (Status(0), Status.ABORTED, Status.REJECTED)[(0, 1, 0, 2)[tag % 4]]
        keep = {Status.ABORTED: 3, Status.REJECTED: 0}.get(status)
        job_words = [
            {"data": word, "last": 0, "status": 0, "tag": tag}
            for word in results(rng, job, size, width, expected, store, keep)
        ]
        if status:
            undefined = rng.getrandbits(8 * width)
            job_words.append({"data": undefined, "status": int(status), "tag": tag})
        job_words[-1]["last"] = 1
        words += job_words
        ends.append((tag, status | Status.READ_ERROR * (operand_error or tag == 11)))
        if tag == 2:  # of a job that was to keep its sums, so it is not known here
            words.append({"data": 0, "last": 1, "status": 1, "tag": 77})
            ends.append((77, 1))
    # Again of a job that was to keep its sums.
    words.append({"data": 0, "last": 1, "status": 2, "tag": 99})
    ends.append((99, 2))
    beats = []

    async def jobs(ctx):
        put(ctx, dut.operand_error, 1)
        put(ctx, dut.take, 1)
        for field in fields:
            put(ctx, dut.word, field)
            await ctx.tick()
        put(ctx, dut.take, 0)

    async def source(ctx):
        await ticks(ctx, 3)
        await send(ctx, dut.results, words, idle=idle)
        await ticks(ctx, 20)
        assert ctx.get(dut.idle) and ctx.get(dut.no_job)

    async def room(ctx):
        while True:
            put(ctx, dut.room, rng.random() >= idle)
            await ctx.tick()

    async def watch(ctx):
        async for _, _, beat in ctx.tick().sample(dut.beats):
            if beat.valid:
                beats.append(plain(beat.beat))

    simulate(dut, jobs, source, background=[room, watch], limit=20_000)
    assert write_beats(memory, beats, width) == ends
    assert memory == expected
