"""The map reader, with sequencer and memory, against windows by multiplication."""

import random

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from chip_configs import small_chip
from chip_jobs import random_job
from chip_reader import hardware_job, steps_of

from verif.amaranth_bench import plain, put, simulate, ticks
from weft.hw.chip.map_reader import MapReader
from weft.hw.chip.memory import BankedMemory
from weft.hw.chip.step_sequencer import StepSequencer

WORDS = 256
CHIPS = {
    "2x2x2": small_chip(2, 2, 2, words=WORDS),
    "3x2x4": small_chip(3, 2, 4, words=WORDS),
    "4x4x2": small_chip(4, 4, 2, words=WORDS),
    "1x4x4": small_chip(1, 4, 4, words=WORDS, read_vectors=4),
    "1x2x2": small_chip(1, 2, 2, words=WORDS),
}


class ReaderBench(wiring.Component):
    """Sequencer, map reader and memory; runs jobs, and records every cycle.

    Attributes
    ----------
    cycles : list of dict
        Values of ports in each cycle.
    """

    def __init__(self, chip, *, buffer_rows=16):
        self.chip, self.cycles = chip, []
        self.sequencer = StepSequencer(chip, buffer_rows=buffer_rows)
        self.reader, self.memory = MapReader(chip), BankedMemory(chip)
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.sequencer = sequencer = self.sequencer
        m.submodules.reader = reader = self.reader
        m.submodules.memory = memory = self.memory
        wiring.connect(m, sequencer.panel, reader.panel)
        m.d.comb += [
            sequencer.job.eq(reader.job), sequencer.start.eq(reader.start),
            reader.step.eq(sequencer.step), memory.rows.eq(reader.rows),
            reader.row_data.eq(memory.row_data),
        ]
        return m

    async def fill(self, ctx, image):
        """Write all vectors."""
        write = self.memory.write
        for number, vector in enumerate(image.memory.reshape(-1, self.chip.core.depth)):
            put(ctx, write, {
                "valid": 1,
                "address": {
                    "bank": number % self.chip.banks, "word": number // self.chip.banks,
                },
                "data": int.from_bytes(vector.tobytes(), "little"),
                "enable": (1 << self.chip.core.depth) - 1,
            })
            await ctx.tick()
        ctx.set(write.valid, 0)
        await ticks(ctx, 2)

    async def run(self, ctx, job, *, base=0, limit=WORDS, slow=0.0, seed=0, cycles=5000):
        """Run a job until its last values; results leave the buffer with probability 1 - slow."""
        rng, reader, sequencer = random.Random(seed), self.reader, self.sequencer
        put(ctx, reader.job, hardware_job(self.chip, job, base))
        put(ctx, reader.base, base)
        put(ctx, reader.limit, limit)
        ctx.set(reader.start, 1)
        pending, found, tail = 0, [], MapReader.LATENCY + 1
        for _ in range(cycles):
            release = pending > 0 and rng.random() >= slow
            ctx.set(sequencer.release, release)
            _, _, step, tiles, rows, a, error = await ctx.tick().sample(
                sequencer.step, sequencer.tiles, reader.rows, reader.a, reader.address_error
            )
            ctx.set(reader.start, 0)
            found.append({
                "step": plain(step), "tile": plain(tiles), "rows": plain(rows), "a": plain(a),
                "error": error,
            })
            pending += int(tiles.valid) - release
            tail -= tail <= MapReader.LATENCY or bool(tiles.valid and tiles.last)
            if not tail:
                break
        else:
            raise TimeoutError(f"the job must end within {cycles} cycles")
        return found


def check(chip, job, found, image):
    """Every step has the vectors of its rows; no two rows read the same bank."""
    vectors, core = image.vectors(), chip.core
    at = [now for now, cycle in enumerate(found) if cycle["step"]["en"]]
    steps = list(steps_of(chip, job))
    assert len(at) == len(steps)
    for now, step in zip(at, steps, strict=True):
        a = found[now + MapReader.LATENCY]["a"]
        outside = [job.outside] * core.depth
        expected = [outside if n is None else vectors[n].tolist() for n in step.numbers]
        assert a[: step.rows] == expected
        flags = found[now]["step"]
        assert flags["clear"] == (step.word == 0)
        assert flags["capture"] == flags["drain"] == step.tile_end
        assert flags["panel_last"] == step.panel_end
        word = job.b_word + step.tile * job.b_step + step.word
        assert flags["b_addr"] == word
        cols = min(core.cols, job.columns - step.tile * core.cols)
        tile = {
            "valid": 1, "rows": step.rows, "cols": cols, "tile_last": int(step.panel_end),
            "line": job.parameter_line + step.tile * chip.row_chunks, "last": int(step.job_end),
        }
        assert found[now]["tile"] == tile if step.tile_end else not found[now]["tile"]["valid"]
    for cycle in found:
        banks = [row["address"]["bank"] for row in cycle["rows"] if row["valid"]]
        assert len(set(banks)) == len(banks)
        assert not cycle["error"]
    reads = sum(row["valid"] for cycle in found for row in cycle["rows"])
    assert reads == sum(n is not None for step in steps for n in step.numbers)


@pytest.mark.parametrize("name", CHIPS)
@pytest.mark.parametrize("seed", range(4))
def test_rows_get_the_vectors_of_their_windows(name, seed):
    """Two jobs without a reset between them, in a memory that begins at a base."""
    chip, rng, base = CHIPS[name], np.random.default_rng([seed, len(name)]), 3
    cases = [random_job(rng, chip, base=base, most_pixels=5, add=False) for _ in range(2)]
    bench = ReaderBench(chip)

    async def play(ctx):
        for case in cases:
            await bench.fill(ctx, case.image)
            found = await bench.run(ctx, case.job, base=base, slow=seed / 5, seed=seed)
            check(chip, case.job, found, case.image)

    simulate(bench, play, limit=20_000)
