"""The output section in the cycle model of lists: whole tiles against their chunks, one by one."""

import numpy as np
import pytest
from network_cores import BATCH1, LARGE, ODD, SMALL, network_core_config

from weft.network_core.cycles.memory import SidePortTimes
from weft.network_core.cycles.output import AddedLayer, PlainLayer
from weft.network_core.cycles.tiles import TileTimes
from weft.network_core.descriptors import ListJob, join, split
from weft.network_core.latencies import SUM_PARTS, array_write, lead, rescale, store_sums

SLOW = network_core_config(2, 8, 8, 2, scale_cycles=8)
CONFIGS = {"large": LARGE, "small": SMALL, "row": BATCH1, "odd": ODD, "slow": SLOW}


def chunk_stores(config, job, start):
    """The cycle and the bank of each store: each chunk waits for its row and for the one before."""
    core, tiles, row, found, request = config.array, TileTimes(config, job, start), 0, [], 0
    size = SUM_PARTS if job.sums else 1
    latency = store_sums(core) if job.sums else rescale(config)
    output, pixel_step, row_step = (
        join(number, config.banks)
        for number in (job.output, job.output_pixel_step, job.output_row_step)
    )
    for tile in tiles:
        first = tile.number * core.cols
        end = min(first + core.cols, job.columns)
        for in_tile in range(tile.rows):
            y, x = divmod(row + in_tile, job.out_width)
            at = output + y * (row_step + (job.out_width - 1) * pixel_step) + x * pixel_step
            for column in range(first, end, core.lanes):
                ready = tile.announced + array_write(config) + 1 + in_tile
                request = max(request + size * core.scale_cycles, ready)
                values = size * column, size * min(column + core.lanes, end)
                for part, value in enumerate(range(*values, core.lanes)):
                    cycle = request + latency + part * core.scale_cycles
                    found.append((cycle, (at + value // core.depth) % config.banks))
        tiles.released.append(request)
        row += tile.rows * (end == job.columns)
    return found


def random_job(rng, config, sums):
    """A job with steps at random, and with columns that end within a chunk."""
    height, width, columns, words, panel = (int(n) for n in rng.integers(1, (6, 9, 30, 12, 9)))
    names = [
        "output", "output_pixel_step", "output_row_step", "add_input", "add_pixel_step",
        "add_row_step",
    ]
    addresses = (split(int(n), config.banks) for n in rng.integers(0, 40, len(names)))
    return ListJob(
        cross=int(rng.integers(2)), panel_rows=min(panel, config.array.rows), out_height=height,
        out_width=width, columns=columns, tile_words=words, sums=int(sums),
        **dict(zip(names, addresses, strict=True)),
    )


@pytest.mark.parametrize("sums", [False, True], ids=["bytes", "sums"])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_stores_are_those_of_each_chunk(config, sums):
    rng = np.random.default_rng(31)
    for _ in range(12):
        job, start = random_job(rng, config, sums), int(rng.integers(1, 50))
        expected = chunk_stores(config, job, start)
        layer, found, endings, now = PlainLayer(config, job, start), [], [], start
        while not (found and found[-1].last):
            if layer.ending(now):
                endings.append(now)
            store = layer.stored(now)
            if store:
                found.append(store)
            now += 1
        assert [(store.cycle, store.bank) for store in found] == expected
        assert endings == [expected[-1][0] - lead(config)]
        skipped = PlainLayer(config, job, start)
        end = skipped.finish(start, None)
        assert end == endings[0]
        left = [skipped.stored(now) for now in range(end, expected[-1][0] + 1)]
        assert [(s.cycle, s.bank) for s in left if s] == [s for s in expected if s[0] >= end]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_job_with_add_ends_alone_as_among_others(config):
    rng = np.random.default_rng(32)
    for _ in range(12):
        job = random_job(rng, config, sums=False)
        assert AddedLayer(config, job, 1).finish(1, SidePortTimes(config)) == added_end(config, job)


def added_end(config, job, banks=True):
    """The cycle in which a job with ADD is ending; without ``banks`` its stores delay no read."""
    layer, port, now = AddedLayer(config, job, 1), SidePortTimes(config), 1
    while not layer.ending(now):
        store, arrived = layer.stored(now), port.arrival(now)
        accepted = port.step(now, (layer.read,), store.bank if store and banks else None)
        layer.step(now, accepted == 0, arrived == 0)
        now += 1
    return now


def test_a_job_with_add_that_ends_alone_waits_for_the_banks_of_its_stores():
    """Its last tile comes while the tile before is stored, and has just enough time to read."""
    config = network_core_config(
        3, 8, 4, 4, words=16384, read_vectors=1, scale_cycles=1, hop=2, multiplier="plain"
    )
    job = ListJob(
        cross=1, panel_rows=2, out_height=2, out_width=8, columns=17, tile_words=29, output=2050,
        output_pixel_step=768, output_row_step=1282, add_input=2816, add_pixel_step=1280,
        add_row_step=768,
    )
    end = added_end(config, job)
    assert end == added_end(config, job, banks=False) + 1
    assert AddedLayer(config, job, 1).finish(1, SidePortTimes(config)) == end
