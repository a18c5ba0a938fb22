"""The load unit and the weight buffer: what loads write, against the golden model's buffers."""

import random

import numpy as np
import pytest
from network_cores import MICRO

from verif.amaranth_bench import plain, play, simulate
from weft.golden.network_core.memory import MemoryArea, NetworkCoreBuffers
from weft.hw.network_core.micro.loads import LoadUnit, WeightBuffer
from weft.network_core.descriptors import ListLoad, LoadTarget, split

COLS = 4
SOURCE = 40
LOADS = [
    dict(target=LoadTarget.B, words=1), dict(target=LoadTarget.B, words=5, first_word=7),
    dict(target=LoadTarget.B, words=3, diagonal=1), dict(target=LoadTarget.B, words=2, fill=1),
    dict(target=LoadTarget.B, words=2, fill=1, diagonal=1, fill_value=-3),
    dict(target=LoadTarget.PARAMETERS, words=4, first_word=2),
    dict(target=LoadTarget.PARAMETERS, words=1, fill=1, fill_value=-100),
    dict(target=LoadTarget.PARAMETERS, words=1, diagonal=1),
    dict(target=LoadTarget.ADD_TABLE, words=6, first_word=500),
    dict(target=LoadTarget.ADD_TABLE, words=1), dict(target=LoadTarget.ADD_TABLE, words=2, fill=1),
]


def golden(load, memory):
    """The buffers after a load."""
    buffers = NetworkCoreBuffers(MICRO)
    area = MemoryArea(MICRO, memory.tobytes(), 0, MICRO.words)
    buffers.load(area, load)
    return buffers


async def execute(ctx, dut, load, memory, *, rng, idle):
    """Execute a load; returns its writes, the vectors that it read, and its cycles."""
    words = np.frombuffer(load.pack(), "<u4")
    for port, value in (
        (dut.set_flags, words[0]), (dut.set_target, words[1] >> 16), (dut.set_word, words[3]),
        (dut.set_words, words[3] >> 16),
    ):
        ctx.set(dut.value, int(value) & 0xFFFF)
        ctx.set(port, 1)
        await ctx.tick()
        ctx.set(port, 0)
    ctx.set(dut.value, 0x5A5A)
    await ctx.tick().repeat(3)  # the engine checks the fields
    ctx.set(dut.load, 1)
    writes, address, now, vector = [], SOURCE, 0, None
    while True:
        ctx.set(dut.read_ready, rng.random() >= idle)
        ctx.set(dut.data, 0xBAD0BAD0 if vector is None else vector)
        read, ready, write, done = (
            await ctx.tick().sample(dut.read, dut.read_ready, dut.write, dut.done)
        )[2:]
        now += 1
        vector = None
        if read and ready:
            vector = int(memory[4 * address : 4 * address + 4].view("<u4")[0])
            address += 1
        if write["valid"]:
            writes.append(plain(write))
        if done:
            break
    ctx.set(dut.load, 0)
    (done,) = (await ctx.tick().sample(dut.done))[2:]
    assert done
    return writes, address - SOURCE, now


def written(buffers, writes):
    """Apply writes to the buffers, as each target takes them."""
    for write in writes:
        word, group = write["word"], write["group"]
        vector = np.frombuffer(write["data"].to_bytes(4, "little"), np.int8)
        target = LoadTarget(write["valid"].bit_length() - 1)
        assert write["valid"] == 1 << target
        if target == LoadTarget.B and write["diagonal"]:
            for column in range(COLS):
                buffers.b[word, column] = vector * (np.arange(4) == column)
        elif target == LoadTarget.B:
            buffers.b[word, group] = vector
        else:
            assert not write["diagonal"]
            lines = buffers.lines if target == LoadTarget.PARAMETERS else buffers.table
            lines[word, 4 * group : 4 * group + 4] = vector


@pytest.mark.parametrize("idle", [0, 0.6])
def test_loads_write_what_the_golden_model_writes(idle):
    rng, dut = random.Random(5), LoadUnit(cols=COLS)
    memory = np.random.default_rng(2).integers(0, 256, MICRO.memory_bytes, np.uint8)

    async def bench(ctx):
        for fields in LOADS:
            load = ListLoad(**{"fill_value": 9} | fields, source=split(SOURCE, MICRO.banks))
            found = NetworkCoreBuffers(MICRO)
            writes, reads, cycles = await execute(ctx, dut, load, memory, rng=rng, idle=idle)
            written(found, writes)
            expected = golden(load, memory)
            for name in ("b", "lines", "table"):
                assert (getattr(found, name) == getattr(expected, name)).all(), fields
            vectors = load.words * load.word_vectors(MICRO)
            assert reads == (0 if load.fill else vectors)
            # A cycle a vector, which is written in the next one.
            assert idle and not load.fill or cycles == vectors + 2

    simulate(dut, bench, limit=5000)


@pytest.mark.parametrize("is_skewed", [False, True])
def test_the_weight_buffer_writes_the_columns_that_are_enabled(is_skewed):
    rng, script = random.Random(3), []
    memory, expected = [[0] * COLS for _ in range(16)], []
    for _ in range(300):
        enable, address, data = rng.randrange(16), rng.randrange(16), rng.getrandbits(32)
        diagonal = int(rng.random() < 0.3)
        enable = 15 if diagonal else enable
        script.append({
            "enable": enable, "write_address": address, "write_data": data, "diagonal": diagonal,
            "read_address": (address + 1) % 16,
        })
        expected.append(list(memory[(address + 1) % 16]))
        for column in range(COLS):
            mask = 0xFF << 8 * column if diagonal else 0xFFFFFFFF
            if enable >> column & 1:
                memory[address][column] = data & mask
    buffer = WeightBuffer(cols=COLS, words=16, is_skewed=is_skewed)
    (found,) = play(buffer, script, "read_data", tail=2)
    halves = [[[word >> low & 0xFFFF for word in words] for words in found] for low in (0, 16)]
    read = halves[0][1:-1], halves[1][2:] if is_skewed else halves[1][1:-1]
    assert read == tuple(
        [[word >> low & 0xFFFF for word in words] for words in expected] for low in (0, 16)
    )
    assert sum(map(any, expected)) > 100
