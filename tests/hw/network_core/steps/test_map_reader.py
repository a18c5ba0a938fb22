"""The map reader, with the step sequencer, against windows by multiplication."""

import functools
import random
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import wiring
from network_core_jobs import NetworkCoreImage, random_job
from network_core_reader import steps_of
from network_cores import small_network_core
from side_port import hardware_fields
from tiers import quick

from verif.amaranth_bench import plain, pulse, put, simulate
from weft.hw.network_core.steps.map_reader import MapReader
from weft.hw.network_core.steps.step_sequencer import StepSequencer
from weft.network_core.descriptors import ListJob, join, split
from weft.network_core.latencies import ROW_READ, map_read

WORDS, BASE = 256, 3
CHIPS = {
    "2x2x2": small_network_core(2, 2, 2, words=WORDS),
    "3x2x4": small_network_core(3, 2, 4, words=WORDS),
    "4x4x2": small_network_core(4, 4, 2, words=WORDS),
    "1x4x4": small_network_core(1, 4, 4, words=WORDS, read_vectors=4),
    "1x2x2": small_network_core(1, 2, 2, words=WORDS),
    "early": small_network_core(8, 4, 4, words=WORDS, early=True),
}
ALL = pytest.mark.parametrize("name", CHIPS)


class ReaderBench(wiring.Component):
    """Sequencer and map reader, which read vectors of an image; records every cycle."""

    def __init__(self, config, *, buffer_rows=16):
        self.config = config
        self.reset = Signal()
        self.sequencer = StepSequencer(config, buffer_rows=buffer_rows)
        self.reader = MapReader(config)
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        sequencer, reader = self.sequencer, self.reader
        m.submodules.sequencer = ResetInserter(self.reset)(sequencer)
        m.submodules.reader = ResetInserter(self.reset)(reader)
        wiring.connect(m, sequencer.panel, reader.panel)
        m.d.comb += [
            sequencer.job.fields.eq(reader.job.fields),
            sequencer.job.start.eq(reader.job.start),
            reader.step.eq(sequencer.step),
        ]
        return m

    async def run(
        self, ctx, job, image, *, base=BASE, limit=WORDS, slow=0.0, seed=0, cycles=5000
    ):
        """Run a job until its last values; results leave the buffer with probability 1 - slow.

        After ``cycles`` the job is aborted by a reset.
        """
        rng, reader, sequencer = random.Random(seed), self.reader, self.sequencer
        put(ctx, reader.job.fields, hardware_fields(self.config, job, base))
        self.outside = job.outside
        put(ctx, reader.window.base, base)
        put(ctx, reader.window.limit, limit)
        ctx.set(reader.job.start, 1)
        last = map_read(self.config)
        pending, found, tail = 0, [], last + 1
        flight = [[None] * self.config.array.rows] * ROW_READ
        for _ in range(cycles):
            release = pending > 0 and rng.random() >= slow
            ctx.set(sequencer.release, release)
            flight.append(plain(ctx.get(reader.rows)))
            self.answer(ctx, image, flight.pop(0), rng)
            cycle = dict(zip(("step", "tile", "rows", "a", "error"), map(plain, (
                await ctx.tick().sample(
                    sequencer.step, sequencer.tiles, reader.rows, reader.a, reader.address_error
                )
            )[2:]), strict=True))
            ctx.set(reader.job.start, 0)
            found.append(cycle)
            pending += cycle["tile"]["valid"] - release
            tail -= tail <= last or cycle["tile"]["last"] & cycle["tile"]["valid"]
            if not tail:
                return found
        await pulse(ctx, self.reset)
        return found

    def answer(self, ctx, image, rows, rng):
        """The data of the requests; anything for a row that reads nothing."""
        depth = self.config.array.depth
        for n, row in enumerate(rows):
            value = rng.getrandbits(8 * depth)
            if row and row["valid"]:
                address = row["address"]
                number = address["bank"] + self.config.banks * address["word"]
                vector = image.memory[number * depth : (number + 1) * depth]
                value = int.from_bytes(vector.tobytes(), "little")
            elif row and row["outside"]:
                value = int.from_bytes([self.outside & 0xFF] * depth)
            ctx.set(self.reader.row_data[n], value)


reader_bench = functools.cache(ReaderBench)  # elaborated once for all tests of a core


def run_jobs(config, cases, **options):
    """The cycles of jobs without a reset between them."""
    bench, found = reader_bench(config), []

    async def play(ctx):
        for job, image in cases:
            found.append(await bench.run(ctx, job, image, **options))

    simulate(bench, play, limit=10_000 * len(cases))
    return found


def check_values(config, job, found, image):
    """Every step has the vectors of its rows; no two rows read the same bank."""
    vectors, core = image.vectors(), config.array
    at = [now for now, cycle in enumerate(found) if cycle["step"]["en"]]
    steps = list(steps_of(config, job))
    assert len(at) == len(steps)
    outside = [job.outside] * core.depth
    for now, step in zip(at, steps, strict=True):
        expected = [outside if n is None else vectors[n].tolist() for n in step.numbers]
        assert found[now + map_read(config)]["a"][: step.rows] == expected
    for cycle in found:
        banks = [row["address"]["bank"] for row in cycle["rows"] if row["valid"]]
        assert len(set(banks)) == len(banks)
        assert not cycle["error"]
    reads = sum(row["valid"] for cycle in found for row in cycle["rows"])
    assert reads == sum(n is not None for step in steps for n in step.numbers)


@ALL
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3))])
def test_rows_get_the_vectors_of_their_windows(name, seed):
    config, rng = CHIPS[name], np.random.default_rng([seed, len(name)])
    cases = [random_job(rng, config, base=BASE, most_pixels=4, add=False) for _ in range(3)]
    found = run_jobs(config, [(case.job, case.image) for case in cases], slow=0.3, seed=seed)
    for case, cycles in zip(cases, found, strict=True):
        check_values(config, case.job, cycles, case.image)


def window_job(rng, config, *, map_size, out, kernel=(1, 1), stride=(1, 1), dilation=(1, 1),
               first=(0, 0), channels=1):
    """A job with a window, and the image of its map; each panel has one row."""
    image = NetworkCoreImage(rng, config, BASE)
    (height, width), banks = map_size, config.banks
    pitch, row = channels, width * channels
    number = image.take(height * row)
    number += first[0] * row + first[1] * pitch
    rest, pixel, tap_x = channels - 1, stride[1] * pitch, dilation[1] * pitch
    return ListJob(
        cross=1, panel_rows=1, out_height=out[0], out_width=out[1], columns=config.array.cols,
        kernel_height=kernel[0], kernel_width=kernel[1], tap_vectors=channels, group_tiles=1,
        tile_words=kernel[0] * kernel[1] * channels, in_height=height, in_width=width,
        first_y=first[0], first_x=first[1], stride_y=stride[0], stride_x=stride[1],
        dilation_y=dilation[0], dilation_x=dilation[1], outside=-7,
        input=split(number, banks), input_pixel_step=split(pixel, banks),
        input_row_step=split(stride[0] * row - (out[1] - 1) * pixel, banks),
        tap_x_step=split(tap_x - rest, banks),
        tap_y_step=split(dilation[0] * row - (kernel[1] - 1) * tap_x - rest, banks),
    ), image


@pytest.mark.parametrize("window", [
    {"map_size": (1, 1), "out": (1, 1), "kernel": (5, 7), "first": (-2, -3)},
    {"map_size": (2, 3), "out": (2, 2), "kernel": (2, 1), "stride": (7, 5), "first": (1, 2)},
    {"map_size": (4, 3), "out": (3, 3), "kernel": (2, 2), "dilation": (3, 2), "first": (-3, 0)},
    {"map_size": (1, 9), "out": (1, 3), "kernel": (1, 3), "stride": (1, 255), "first": (0, -255)},
    {"map_size": (2, 2), "out": (2, 2), "kernel": (1, 1), "first": (-1, 1), "channels": 5},
    {"map_size": (3, 2), "out": (2, 1), "kernel": (1, 3), "dilation": (1, 255), "first": (0, -254)},
    {"map_size": (1, 2), "out": (3, 1), "stride": (255, 1), "first": (-255, 1)},
])
def test_extreme_windows(window):
    config, rng = CHIPS["2x2x2"], np.random.default_rng(1)
    job, image = window_job(rng, config, **window)
    (found,) = run_jobs(config, [(job, image)])
    check_values(config, job, found, image)
    numbers = [n for step in steps_of(config, job) for n in step.numbers]
    assert any(n is not None for n in numbers)


@pytest.mark.parametrize("group_tiles", [1, 2, 3])
def test_groups_of_tiles_move_through_the_channels(group_tiles):
    config, rng = CHIPS["2x2x2"], np.random.default_rng(1)
    job, image = window_job(
        rng, config, map_size=(2, 3), out=(2, 2), kernel=(1, 2), first=(0, -1), channels=5
    )
    job = replace(
        job, columns=5 * config.array.cols, group_tiles=group_tiles,
        group_step=split(2, config.banks)
    )
    (found,) = run_jobs(config, [(job, image)])
    check_values(config, job, found, image)


@pytest.mark.parametrize("size, first, inside", [
    (65535, -2, 1), (32768, 32766, 2), (65535, 32767, 3), (32767, 32767, 0), (1, -32768, 0),
])
def test_sizes_and_places_of_sixteen_bits(size, first, inside):
    """Three pixels in a row or a column that read the same vector, where they lie inside."""
    config, image = CHIPS["2x2x2"], NetworkCoreImage(np.random.default_rng(2), CHIPS["2x2x2"], BASE)
    pixel = {"panel_rows": 1, "columns": 1, "kernel_height": 1, "kernel_width": 1,
             "tap_vectors": 1, "tile_words": 1, "group_tiles": 1, "stride_x": 1, "stride_y": 1}
    column = ListJob(
        out_height=3, out_width=1, in_height=size, in_width=1, first_y=first, **pixel
    )
    row = ListJob(out_height=1, out_width=3, in_height=1, in_width=size, first_x=first, **pixel)
    for found in run_jobs(config, [(column, image), (row, image)]):
        assert sum(request["valid"] for cycle in found for request in cycle["rows"]) == inside


@pytest.mark.parametrize("name", ["3x2x4", "1x2x2"])
def test_an_access_beyond_the_limits_is_an_error_and_does_not_happen(name):
    config, rng = CHIPS[name], np.random.default_rng(3)
    case = random_job(rng, config, base=BASE, most_pixels=4, add=False, kind="conv")
    steps = list(steps_of(config, case.job))
    words = [n // config.banks for step in steps for n in step.numbers if n is not None]
    low, high = sorted(words)[len(words) // 4], sorted(words)[-len(words) // 4]
    errors = 0
    for shift, limit in ((0, BASE + high), (-low - 1, WORDS)):  # maps beyond limit, before base
        job = replace(case.job, input=split(
            join(case.job.input, config.banks) + shift * config.banks, config.banks
        ))
        (found,) = run_jobs(config, [(job, case.image)], limit=limit)
        at = [now for now, cycle in enumerate(found) if cycle["step"]["en"]]
        for now, step in zip(at, steps, strict=True):
            cycle = found[now + 1]
            allowed = [
                n is not None and 0 <= n + shift * config.banks < (limit - BASE) * config.banks
                for n in step.numbers
            ]
            wrong = [n is not None and not ok for n, ok in zip(step.numbers, allowed, strict=True)]
            assert [row["valid"] for row in cycle["rows"][: step.rows]] == allowed
            assert not any(row["valid"] for row in cycle["rows"][step.rows :])
            assert cycle["error"] == any(wrong)
            errors += any(wrong)
        assert errors and errors < 2 * len(steps)
        assert sum(cycle["error"] for cycle in found) <= errors


def full_rate_job(config, *, tile_words, tiles, pixels):
    """A matrix product of panels with all rows."""
    return ListJob(
        cross=1, panel_rows=config.array.rows, out_height=1, out_width=pixels, kernel_height=1,
        columns=tiles * config.array.cols, kernel_width=1, tap_vectors=tile_words,
        group_tiles=tiles,
        tile_words=tile_words, in_height=1, in_width=pixels, stride_x=1, stride_y=1,
        input_pixel_step=split(tile_words, config.banks),
    )


@pytest.mark.parametrize("name", ["4x4x2", "1x2x2"])
@pytest.mark.parametrize("tile_words, tiles", quick(3, [(1, 1), (6, 1), (1, 4), (2, 2), (4, 1)]))
def test_panels_follow_each_other_without_a_lost_cycle(name, tile_words, tiles):
    """A tile takes its steps, or the cycles in which its rows drain."""
    config = CHIPS[name]
    rows = config.array.rows
    job = full_rate_job(config, tile_words=tile_words, tiles=tiles, pixels=4 * rows)
    image = NetworkCoreImage(np.random.default_rng(4), config, BASE)
    (found,) = run_jobs(config, [(job, image)])
    ends = [now for now, cycle in enumerate(found) if cycle["tile"]["valid"]]
    first = rows + MapReader.START_LATENCY + tile_words - 1  # of the first panel
    assert ends == [first + n * max(tile_words, rows) for n in range(4 * tiles)]


@pytest.mark.parametrize("after", [
    3, 8, *(pytest.param(after, marks=pytest.mark.slow) for after in (1, 2, 5, 13, 21)),
])
def test_a_job_after_an_abort_is_correct(after):
    config, rng = CHIPS["3x2x4"], np.random.default_rng(after)
    aborted, case = (
        random_job(rng, config, base=BASE, most_pixels=4, add=False, kind="conv") for _ in range(2)
    )
    check_after_an_abort(config, (aborted.job, aborted.image), (case.job, case.image), after)


@pytest.mark.parametrize("after", quick(4, [1, 3, 6, 8, 2, 4, 5, 7]))
def test_no_row_of_an_aborted_panel_is_left(after):
    """The next job has panels of one row, and the aborted one has panels of all rows."""
    config, rng = CHIPS["3x2x4"], np.random.default_rng(1)
    job = full_rate_job(config, tile_words=3, tiles=1, pixels=9)
    following = window_job(rng, config, map_size=(2, 3), out=(2, 2))
    check_after_an_abort(config, (job, NetworkCoreImage(rng, config, BASE)), following, after)


def check_after_an_abort(config, aborted, following, after):
    """Abort a job after some cycles; the following job reads its own rows only."""
    bench = reader_bench(config)

    async def play(ctx):
        await bench.run(ctx, *aborted, cycles=after)
        found = await bench.run(ctx, *following)
        check_values(config, following[0], found, following[1])

    simulate(bench, play)
