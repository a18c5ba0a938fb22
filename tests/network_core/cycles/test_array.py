"""The tiles of a job in the cycle model of lists: cycles computed by hand."""

from weft.config import Config
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles.tiles import TileTimes, panel_sizes
from weft.network_core.descriptors import ListJob
from weft.network_core.latencies import result_rows

CORE = Config(rows=4, cols=4, depth=4, lanes=4, requantize="tflite", activation="none")
CHIP = NetworkCoreConfig(array=CORE)


def job(**fields):
    return ListJob(**{
        "out_height": 1, "out_width": 1, "panel_rows": 4, "columns": 4, "tile_words": 1, **fields
    })


def announced(count, released=(), **fields):
    tiles = TileTimes(CHIP, job(**fields), 100)
    tiles.released += released
    return [next(tiles).announced for _ in range(count)]


def test_panels():
    rows = dict(out_height=2, out_width=5, panel_rows=4)
    assert list(panel_sizes(job(cross=1, **rows))) == [4, 4, 2]
    assert list(panel_sizes(job(cross=0, **rows))) == [4, 1, 4, 1]


def test_the_first_step_waits_for_its_panel():
    """A pixel a cycle from cycle 102 on; the panel of 4 is taken in cycle 106, the step is 107."""
    assert announced(1, out_width=4) == [107]
    assert announced(1, out_width=1) == [104]
    assert announced(1, out_width=4, tile_words=5) == [111]


def test_long_tiles_follow_each_other():
    assert announced(3, out_width=9, columns=8, tile_words=7) == [113, 120, 127]


def test_short_tiles_wait_for_the_drain():
    """4 cycles; the panel behind a panel of one tile of one step is ready in time."""
    assert announced(4, out_width=16, columns=4) == [107, 111, 115, 119]
    assert announced(3, columns=12, tile_words=2) == [105, 109, 113]


def test_a_tile_waits_for_space_in_the_result_buffer():
    space = result_rows(CHIP) // 4
    fields = dict(columns=4 * (space + 2), tile_words=4)
    *_, last = announced(space + 1, released=[200], **fields)
    assert last == 202  # the decision follows the release in the next cycle
    tiles = TileTimes(CHIP, job(**fields), 100)
    for _ in range(space):
        assert tiles.known
        next(tiles)
    assert not tiles.known
