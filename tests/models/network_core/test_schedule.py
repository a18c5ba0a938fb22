"""Schedules: no load overwrites words that a job still needs, and all fits its buffer."""

from dataclasses import replace

import numpy as np
import pytest
from network_cores import network_core_config
from rejects import rejects
from tiers import seeds

from weft.models.network_core import schedule as module
from weft.models.network_core.demands import LayerDemand
from weft.models.network_core.map_pitches import Panels
from weft.models.network_core.pieces import Shape
from weft.models.network_core.residence import CHIP_PACE, LoadPace
from weft.models.network_core.schedule import schedule_buffers
from weft.models.network_core.weights import BufferPlaces, LayerWords


def sizes(tiles, tile_words, **fields):
    common = dict(
        group_tiles=tiles, group_step=0, granule=1, diagonal=False, filled=False, packed=False,
        row_lines=2,
    )
    return LayerWords(tiles=tiles, tile_words=tile_words, **common | fields)


def demand(tiles, tile_words, *, adds=False, **fields):
    sized = sizes(tiles, tile_words, **{"tap_vectors": tile_words, **fields})
    kernel = 1, tile_words // sized.tap_vectors
    return LayerDemand("CONV_2D c", sized, Shape((10, 4), kernel), Panels(True, 4, 10), adds, adds)


CHIP = network_core_config(4, 4, 4, 2, b_words=100, lines=20)
SLOW = LoadPace(8, 60)  # as a program memory


def test_what_fits_is_resident():
    schedule = schedule_buffers([demand(2, 30), demand(4, 10, adds=True)], CHIP)
    assert (schedule.b_resident, schedule.resident_lines) == (True, {0, 1})
    assert [(part.b_word, part.words, part.line, part.lines) for part in schedule.parts] == [
        (0, 60, 0, 4), (60, 40, 4, 9)
    ]
    assert all(part.b_jobs == part.line_jobs == 0 for part in schedule.parts)


def test_the_first_job_of_a_layer_loads_the_add_table_after_the_layer_before():
    layers = [demand(2, 30, adds=True), demand(1, 5), demand(2, 90, adds=True)]
    parts = schedule_buffers(layers, CHIP).parts
    assert [(part.layer, part.table_jobs) for part in parts] == [
        (0, 0), (1, None), (2, 1), (2, None)
    ]


def random_demands(rng):
    for _ in range(int(rng.integers(2, 12))):
        filled = rng.random() < 0.2
        yield demand(
            int(rng.integers(1, 20)), int(rng.integers(1, rng.choice([60, 60, 250]))),
            adds=rng.random() < 0.3, filled=filled, diagonal=filled,
            **{"tap_vectors": 1} if filled else {"granule": int(rng.choice([1, 1, 2]))},
        )


def check_layer(entry, parts):
    """The parts compute each pixel of each tile with all words, and go on with their own sums."""
    done = np.zeros((entry.sizes.tiles, *entry.shape.output, entry.sizes.tile_words), int)
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        area, taps, first = part.piece.area, part.piece.taps, part.piece.first_word
        done[
            part.first : part.first + part.tiles, area.y : area.y + area.height,
            area.x : area.x + area.width, first : first + taps.words,
        ] += 1
        if part.piece.partial:
            assert after and (after.first, after.piece.area) == (part.first, area)
            assert part.tiles == after.tiles == 1
            assert area.height * area.width <= entry.panels.rows
    assert (done == 1).all()
    if all(part.tiles > 1 for part in parts[:-1]):
        assert all(part.tiles % entry.sizes.granule == 0 for part in parts[:-1])


@pytest.mark.parametrize("fewest", [False, True])
@pytest.mark.parametrize("seed", seeds(3, 20, 40))
def test_parts_follow_each_other_and_wait(seed, fewest):
    """Each word is written only after the last job that uses it.

    Loads start in their order, so a load also waits for the jobs of the loads before it.
    """
    demands = list(random_demands(np.random.default_rng(seed)))
    schedule = schedule_buffers(demands, CHIP, fewest=fewest)
    check_places(demands, schedule, CHIP)
    assert len(schedule.resident_lines) in (0, len(demands))


def check_places(demands, schedule, config):
    """Words and lines lie in their buffer, and what is there is not needed any more."""
    for layer, entry in enumerate(demands):
        check_layer(entry, [part for part in schedule.parts if part.layer == layer])
    every = range(len(demands)) if schedule.b_resident else ()
    for first, words, waits, size, residents in (
        ("b_word", "words", "b_jobs", config.b_words, every),
        ("line", "lines", "line_jobs", config.lines, schedule.resident_lines),
    ):
        owner = [None] * size  # of each word: the last job that uses it
        ended = 0  # jobs that have ended before a load
        for job, part in enumerate(schedule.parts):
            entry = demands[part.layer]
            tiles = 1 if entry.sizes.filled else part.tiles
            used = tiles * part.piece.taps.words if first == "b_word" else (
                part.tiles * entry.sizes.row_lines + entry.adds
            )
            start = getattr(part, first)
            assert start + used <= size
            if getattr(part, words):
                ended = max(ended, getattr(part, waits))
                before = {last for last in owner[start : start + used] if last is not None}
                assert not (part.layer in residents and before)
                assert not before or ended > max(before)
                assert ended <= job
            owner[start : start + used] = [job] * used


@pytest.mark.parametrize("seed", seeds(3, 10, 40))
def test_some_parameters_are_resident(seed):
    """Those of layers with few words a tile. The others share an eighth of the lines.

    All jobs of layers with the same lines read them in one place, and one of them loads them.
    """
    rng = np.random.default_rng(seed)
    config = network_core_config(4, 4, 4, 2, b_words=100, lines=80)
    demands = [demand(8, 13)]  # several jobs
    demands += [demand(*map(int, rng.integers((1, 14), (20, 30)))) for _ in range(11)]
    for n in range(3):  # as three stripes of the first layer, one behind the other
        demands.insert(4 * n + 1, replace(demands[0], lines_of=0))
    schedule = schedule_buffers(demands, config, pace=SLOW)
    check_places(demands, schedule, config)
    resident = schedule.resident_lines
    assert 0 < len(resident) < len(demands)
    lines = {}
    for part in schedule.parts:
        source = demands[part.layer].lines_of
        owner = part.layer if source is None else source
        if part.layer not in resident:
            assert part.line >= 70 and part.lines == 2 * part.tiles
            continue
        assert part.line + 2 * part.tiles <= 70
        for tile in range(part.first, part.first + part.tiles):
            place = part.line + 2 * (tile - part.first)
            assert lines.setdefault((owner, tile), place) == place
        assert part.lines == (2 * part.tiles if source is None else 0)
    assert len({*lines.values()}) == len(lines)
    assert not schedule_buffers(demands, config).resident_lines  # which loads quickly


def test_words_on_the_chip_load_quickly():
    """All of them: as if all data were there. Half of them: between that and none."""
    config = network_core_config(4, 4, 4, 2, b_words=100, lines=1000)
    demands = [demand(8, 15), demand(12, 4), demand(3, 30)]
    quick, half, none = (
        schedule_buffers(demands, config, pace=SLOW, kept=[part] * 3).cycles for part in (1, 0.5, 0)
    )
    assert quick == schedule_buffers(demands, config).cycles < half < none


def test_refuses_what_has_no_smaller_job():
    """A tile has half a vector of columns, or a diagonal of long taps, or too many lines."""
    narrow = network_core_config(4, 2, 4, 2, b_words=100, lines=20, read_vectors=2)
    rule = "[network_core] b_words must be at least"
    with rejects(ValueError, f"a job of CONV_2D c needs 102 words of B, and the buffer has 100:"
                             f" {rule} 102"):
        schedule_buffers([demand(4, 51, granule=2)], narrow)
    with rejects(ValueError, f"a job of CONV_2D c needs 101 words of B, and the buffer has 100:"
                             f" {rule} 101"):
        schedule_buffers([demand(1, 202, tap_vectors=101, diagonal=True)], CHIP)
    small = network_core_config(4, 4, 4, 1, b_words=100, lines=4)
    rule = "[network_core] lines must be at least 5"
    with rejects(ValueError, f"a job of CONV_2D c needs 5 parameter lines, and the buffer has 4:"
                             f" {rule}"):
        schedule_buffers([demand(4, 1, adds=True, granule=2, row_lines=4)], small)


def test_a_long_tile_is_several_jobs():
    """250 words in 100: three jobs for each of the 10 panels; the lines of the tile stay."""
    parts = schedule_buffers([demand(1, 250)], CHIP, fewest=True).parts
    assert [(part.words, part.lines) for part in parts[:4]] == [(83, 2), (83, 0), (84, 0), (83, 0)]
    assert len(parts) == 30
    parts = schedule_buffers([demand(1, 250)], CHIP).parts
    assert max(part.words for part in parts) <= 50  # the next words load meanwhile


def test_the_smaller_one_of_three_jobs_is_in_the_middle():
    """45 words of one job and 30 of the next are in B at once, never 45 and 45."""
    schedule = schedule_buffers([demand(2, 17), demand(1, 10), demand(8, 15)], CHIP)
    assert [(part.tiles, part.b_word, part.b_jobs) for part in schedule.parts] == [
        (2, 0, 0), (1, 34, 0), (3, 44, 0), (2, 0, 1), (3, 30, 3),
    ]


def test_the_fewest_jobs_are_as_large_as_the_buffers():
    """100 words: 6 and 2 tiles of 15 words; 20 lines: 10 tiles of 2."""
    layers = [demand(8, 15), demand(12, 1), demand(1, 60)]
    parts = schedule_buffers(layers, CHIP, fewest=True).parts
    assert [(part.layer, part.tiles) for part in parts] == [(0, 6), (0, 2), (1, 10), (1, 2), (2, 1)]
    assert len(parts) < len(schedule_buffers(layers, CHIP).parts)


def test_a_core_that_hides_no_load_has_the_fewest_jobs():
    """A microprogram executes loads and jobs one at a time."""
    layers = [demand(8, 15), demand(12, 1), demand(1, 60)]
    one_port, fast = (
        network_core_config(
            1, 4, 4, 1, b_words=100, lines=20, read_vectors=1, scale_cycles=4, target=target,
            multiplier="plain",
        )
        for target in ("ice40up", "ecp5")
    )
    schedule = schedule_buffers(layers, one_port)
    assert schedule == schedule_buffers(layers, one_port, fewest=True)
    assert len(schedule.parts) < len(schedule_buffers(layers, fast).parts)


def test_a_part_lies_where_the_fewest_jobs_must_end():
    """The last one: not after the part before, but behind the words of an older job."""
    layers = [demand(1, words) for words in (40, 20, 30, 35, 10)]
    assert [(part.b_word, part.b_jobs) for part in schedule_buffers(layers, CHIP).parts] == [
        (0, 0), (40, 0), (60, 0), (0, 1), (90, 0),
    ]


@pytest.mark.parametrize("seed", seeds(2, 10, 25))
@pytest.mark.parametrize("pace", [
    pytest.param(CHIP_PACE, id="chip"), pytest.param(SLOW, id="program", marks=pytest.mark.slow),
])
def test_shares_that_cannot_be_better_change_nothing(seed, pace, monkeypatch):
    """A schedule that stops early is equal to one that follows each of its shares to the end."""
    rng = np.random.default_rng(seed)
    demands = [entry for _ in range(1 + seed % 3) for entry in random_demands(rng)]
    small = network_core_config(4, 4, 4, 2, b_words=150, lines=45)
    found = schedule_buffers(demands, small, pace=pace)
    monkeypatch.setattr(module._Search, "_least", lambda *_: -1)
    monkeypatch.setattr(module._State, "follows", lambda *_: False)
    assert schedule_buffers(demands, small, pace=pace) == found


@pytest.mark.slow
def test_shares_that_cannot_be_better_end_soon(monkeypatch):
    """Less than half of the places are computed."""
    taken = []
    take = BufferPlaces.take
    monkeypatch.setattr(
        BufferPlaces, "take", lambda self, *given: taken.append(1) or take(self, *given)
    )
    rng = np.random.default_rng(1)
    demands = [demand(int(width) // 4, int(width)) for width in rng.integers(8, 40, 60)]

    def places():
        taken.clear()
        schedule_buffers(demands, CHIP)
        return len(taken)

    few = places()
    monkeypatch.setattr(module._Search, "_least", lambda *_: -1)
    monkeypatch.setattr(module._State, "follows", lambda *_: False)
    whole = places()
    assert 2 * few < whole


@pytest.mark.parametrize("lines", [20, 1000])
def test_the_least_cycles_have_the_waits_for_space(lines):
    """60 and 60 words are not in 100 words at once: each load waits for the job before."""
    chip = network_core_config(4, 4, 4, 2, b_words=100, lines=lines)
    search = module._Search([demand(1, 60) for _ in range(20)], chip, False, False, True)
    tried = search.tried([1] * 20)
    room = None if tried.resident else lines
    sizes = [search.tiles(layer, 1, room) for layer in range(20)]
    jobs = [
        job for layer in range(20)
        for job in search._jobs(layer, sizes[layer], layer in tried.resident)
    ]
    assert tried.cycles == sum(job.cycles + job.b_load + job.line_load for job in jobs)
    assert search._least(search._start(tried.resident), tried.rest[0]) == tried.cycles
