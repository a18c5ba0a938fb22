"""The aligner: runs of bytes become pack words, from every first byte of a beat."""

import random

import pytest

from verif.amaranth_bench import plain, send, simulate, ticks
from weft.config import Config
from weft.hw.dma.address_generator import PackTask
from weft.hw.dma.layout import layouts, pack_bytes
from weft.hw.dma.packer import Aligner

CONFIGS = {
    "2-of-16": Config(),
    "1-of-4": Config(rows=2, cols=2, bytes_in=4),
    "4-of-8": Config(rows=8, cols=8, depth=2, multiplier="plain", bytes_in=8),
    "16-of-16": Config(rows=8, cols=8, depth=8, multiplier="plain"),
}


def random_tasks(rng, width, size):
    """Yield tasks, a few per slice: the task, the bytes of its run, its index in the slice."""
    for n in range(20):
        count = rng.randrange(1, 4)
        for index in range(count):
            run = rng.randbytes(rng.choice([0, 1, 2, size, 3 * size - 1, 40]))
            words = -(-len(run) // size) + rng.randrange(2) or 1
            last = int(index == count - 1)
            yield {
                "operand_b": rng.randrange(2), "k_minor": rng.randrange(2),
                "packed": rng.randrange(2), "has_data": int(bool(run)),
                "last": last, "load_last": int(last and n % 3 == 0), "last_row_end": 0,
                "offset": rng.randrange(width), "last_byte": max(len(run) - 1, 0),
                "last_word": words - 1,
            }, run, index


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("idle, full", [(0, 0), (0.6, 0.8)])
def test_aligns(config, idle, full):
    rng = random.Random(config.bytes_in)
    width, size = config.bytes_in, pack_bytes(config)
    shape = PackTask(data_bytes=width, layouts=layouts(config))
    dut = Aligner(data_bytes=width, pack_bytes=size, task=shape, max_tasks=4)
    items = [*random_tasks(rng, width, size)]
    beats, expected, expected_pulses = [], [], {"slice_start": 0, "load_done": 0}
    for task, run, task_index in items:
        if run:
            whole = rng.randbytes(task["offset"]) + run
            whole += rng.randbytes(-len(whole) % width)
            beats += [whole[n : n + width] for n in range(0, len(whole), width)]
        expected_pulses["slice_start"] += task_index == 0
        expected_pulses["load_done"] += task["load_last"]
        for index in range(task["last_word"] + 1):
            part = run[index * size : (index + 1) * size].ljust(size, b"\0")
            expected.append({
                "bytes": [*part], "last_row_end": 0, "index": index, "task": task_index,
                **{name: task[name] for name in ("operand_b", "k_minor", "packed")},
                "last": int(task["last"] and index == task["last_word"]),
            })
    found, pulses = [], {"slice_start": 0, "load_done": 0}

    async def source(ctx):
        await send(ctx, dut.tasks, [task for task, _, _ in items])

    async def reader(ctx):
        """Offer beats, and the requested parts two cycles later; vary ``room``."""
        draw, remaining, in_flight = random.Random(1), [*beats], [bytes(size)] * 2
        valid = False
        while True:
            ctx.set(dut.room, draw.random() >= full)
            valid = bool(remaining) and (valid or draw.random() >= idle)
            ctx.set(dut.beat_valid, valid)
            ctx.set(dut.part, int.from_bytes(in_flight.pop(0), "little"))
            _, _, index, pop = await ctx.tick().sample(dut.index, dut.pop)
            part = slice(index * size, (index + 1) * size)
            in_flight.append(remaining[0][part] if valid else draw.randbytes(size))
            assert valid or not pop
            if pop:
                remaining.pop(0)
                valid = False

    async def watch(ctx):
        while len(found) < len(expected):
            _, _, words, *values = await ctx.tick().sample(
                dut.words, dut.slice_start, dut.load_done
            )
            for name, value in zip(pulses, values, strict=True):
                pulses[name] += value
            if words.valid:
                found.append(plain(words.word))
        await ticks(ctx, 10)

    simulate(dut, source, watch, background=[reader], limit=20_000)
    assert found == expected
    assert pulses == expected_pulses
