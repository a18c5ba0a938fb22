"""The step sequencer against its rules: steps, tiles, credits, the pace of the drain."""

import random

import pytest
from network_cores import small_network_core
from side_port import hardware_fields

from verif.amaranth_bench import plain, put, simulate
from weft.hw.network_core.steps.step_sequencer import StepSequencer
from weft.latencies import STEP
from weft.network_core.descriptors import ListJob
from weft.network_core.latencies import lead, map_read


def steps_of(config, job, rows, continued):
    """The steps and tiles of a job, for the rows of its panels; ``continued``: after a partial job.

    A partial job adds all its tiles.
    """
    cols = config.array.cols
    tiles = -(-job.columns // cols)
    for panel, panel_rows in enumerate(rows):
        for tile in range(tiles):
            for word in range(job.tile_words):
                end, tile_last = word == job.tile_words - 1, tile == tiles - 1
                first = panel == tile == 0
                yield {
                    "en": 1,
                    "clear": int(word == 0 and not (continued if first else job.partial)),
                    "capture": int(end), "drain": int(end and not job.partial),
                    "panel_last": int(end and tile_last),
                    "b_addr": (job.b_word + tile * job.b_step + word) % config.b_words,
                }, end and not job.partial and {
                    "valid": 1, "rows": panel_rows, "cols": min(cols, job.columns - tile * cols),
                    "line": job.parameter_line + tile * config.row_chunks,
                    "tile_last": int(tile_last),
                    "last": int(tile_last and panel == len(rows) - 1),
                }, word == 0 and tile == 0


class SequencerBench:
    """Runs jobs; panels come and results leave with random delays, or at once."""

    def __init__(self, config, buffer_rows, *, idle=0.0, slow=0.0, seed=0):
        self.config, self.idle, self.slow = config, idle, slow
        self.dut = StepSequencer(config, buffer_rows=buffer_rows)
        self.credits = buffer_rows // config.array.rows
        self.rng = random.Random(seed)
        self.now, self.last_drain, self.undelivered = 0, -100, []
        self.drains, self.continued = [], False
        self.ends, self.ended = [], []  # the last steps of partial jobs, and their pulses

    async def run(self, ctx, job, rows):
        """One job with panels of ``rows``: every cycle must follow the rules."""
        dut, rng = self.dut, self.rng
        put(ctx, dut.job.fields, hardware_fields(self.config, job))
        ctx.set(dut.job.start, 1)
        await self.cycle(ctx, None, False)
        ctx.set(dut.job.start, 0)
        valid, panel = False, 0
        for step, tile, first in steps_of(self.config, job, rows, self.continued):
            for _ in range(200):
                valid = valid or (panel < len(rows) and rng.random() >= self.idle)
                ctx.set(dut.panel.valid, valid)
                if valid:
                    last = panel == len(rows) - 1
                    put(ctx, dut.panel.payload, {"rows": rows[panel], "last": last})
                paced = self.now >= self.last_drain + self.config.array.rows
                may_end = not step["capture"] or (paced and len(self.undelivered) < self.credits)
                go = may_end and (not first or valid)
                taken = await self.cycle(ctx, (step, tile) if go else None, go and first)
                if taken:
                    valid, panel = False, panel + 1
                if go:
                    break
            else:
                raise TimeoutError("a step must come within 200 cycles")
        assert panel == len(rows)
        ctx.set(dut.panel.valid, 0)
        self.continued = job.partial
        if job.partial:
            self.ends.append(self.now - 1)
            while len(self.ended) < len(self.ends):  # the next job starts after the end
                assert self.now < self.ends[-1] + 20
                await self.cycle(ctx, None, False)

    async def cycle(self, ctx, expected, takes):
        """A cycle in which a step is decided on, or none."""
        dut, undelivered = self.dut, self.undelivered
        ready = bool(undelivered) and self.rng.random() >= self.slow
        ctx.set(dut.release, ready)
        _, _, valid, panel_ready = await ctx.tick().sample(dut.panel.valid, dut.panel.ready)
        step, tile = plain(ctx.get(dut.step)), plain(ctx.get(dut.tiles))  # one cycle later
        assert (valid and panel_ready) == takes
        if ctx.get(dut.done):
            self.ended.append(self.now)
        if ready:
            undelivered.pop()
        if not expected:
            assert not step["en"] | step["capture"] | step["drain"] | step["clear"] | tile["valid"]
        else:
            assert step == expected[0]
            assert tile == expected[1] if expected[1] else not tile["valid"]
            if expected[1]:
                undelivered.append(self.now)
                self.drains.append(self.now)
                self.last_drain = self.now
        self.now += 1
        return takes


def random_sequence(config, rng, partial):
    job = ListJob(
        partial=partial, tile_words=rng.choice([1, 1, 2, 3, 7]),
        columns=rng.randrange(1, 3 * config.array.cols + 1),
        b_word=rng.randrange(20), b_step=rng.choice([0, 7, 30]), parameter_line=rng.randrange(20),
    )
    return job, [rng.randrange(1, config.array.rows + 1) for _ in range(rng.randrange(1, 6))]


@pytest.mark.parametrize("rows, cols, lanes", [(1, 2, 1), (2, 4, 2), (3, 4, 1), (4, 2, 2)])
@pytest.mark.parametrize("idle, slow, buffer_rows", [
    (0, 0, 16), (0.5, 0.8, 4),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0.6, 0, 4), (0, 0.9, 8))),
])
def test_every_cycle_follows_the_rules(rows, cols, lanes, idle, slow, buffer_rows):
    """Jobs without a reset between them."""
    config = small_network_core(rows, cols, 2, lanes=lanes, lines=64, b_words=64)
    bench = SequencerBench(config, buffer_rows, idle=idle, slow=slow, seed=rows)
    rng = random.Random(cols)

    async def play(ctx):
        for number in range(8):
            await bench.run(ctx, *random_sequence(config, rng, int(number in (1, 3, 4))))

    simulate(bench.dut, play)
    assert len(bench.drains) > 10
    # A step leaves STEP cycles after its decision, and its vectors come `map_read` cycles later.
    wait = STEP + map_read(config) + lead(config)
    assert bench.ended == [end + wait - 1 for end in bench.ends]


@pytest.mark.parametrize("tile_words", [1, 2, 3, 5])
def test_tiles_follow_at_full_rate(tile_words):
    config = small_network_core(3, 2, 2)
    bench = SequencerBench(config, 16)

    async def play(ctx):
        await bench.run(ctx, ListJob(tile_words=tile_words, columns=4), [3, 3, 2])

    simulate(bench.dut, play)
    gap = max(tile_words, 3)
    assert bench.drains == [tile_words + n * gap for n in range(6)]


def test_a_full_result_buffer_stops_the_last_step():
    config = small_network_core(2, 2, 2)
    bench = SequencerBench(config, 4, slow=1)

    async def play(ctx):
        with pytest.raises(TimeoutError):
            await bench.run(ctx, ListJob(tile_words=3, columns=8), [2])

    simulate(bench.dut, play)
    assert bench.drains == [3, 6]
