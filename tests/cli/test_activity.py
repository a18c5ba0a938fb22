"""The picture of an accelerator's activity: its marks and their places, and invalid input."""

import numpy as np
import pytest
from rejects import rejects
from tiers import quick

from weft.cli.activity import (
    BUSY,
    COMPUTING,
    LOADING,
    RESULT,
    STALLED,
    STARVED,
    Timeline,
    activity_picture,
)

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

COLOURS = {
    LOADING: "#56b4e9", COMPUTING: "#009e73", STARVED: "#f0b429", STALLED: "#b23a00",
    RESULT: "#8e5aa8",
}  # fmt: skip
WHOLE, CLOSE, LEGEND = slice(150, 500), slice(550, 790), slice(840, 900)
DATA = slice(121, 1455)


def read(path):
    from matplotlib.image import imread

    return np.round(imread(path)[..., :3] * 255).astype(int)


def share(pixels, flag):
    """The share of ``pixels`` in the colour of ``flag``."""
    wanted = [int(COLOURS[flag][i : i + 2], 16) for i in (1, 3, 5)]
    return np.mean(np.all(np.abs(pixels - wanted) <= 2, axis=-1))


def draw(path, flags, layers=(("layer 1", 0),)):
    activity_picture(path, Timeline(np.asarray(flags, np.uint8), layers), "A title")
    return read(path)


@pytest.mark.parametrize("cycles", quick(1, [50_000, 1, 40, 601]))
def test_picture_of_any_length(tmp_path, cycles):
    picture = draw(tmp_path / "a.png", np.full(cycles, LOADING | COMPUTING))
    assert picture.shape == (900, 1600, 3)
    for flag in (LOADING, COMPUTING):
        assert share(picture[WHOLE, DATA], flag) > 0.15
        assert share(picture[CLOSE, DATA], flag) > 0.10
    for flag in (STARVED, STALLED, RESULT):
        assert share(picture[WHOLE, DATA], flag) == share(picture[CLOSE, DATA], flag) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.parametrize("flag", quick(1, [*COLOURS]))
def test_every_flag_has_a_colour_a_place_and_a_legend(tmp_path, flag):
    flags = np.zeros(2000, np.uint8)
    flags[:1000] = flag
    picture = draw(tmp_path / "a.png", flags)
    middle = (DATA.start + DATA.stop) // 2
    assert share(picture[WHOLE, DATA.start : middle - 10], flag) > 0.15
    assert share(picture[WHOLE, middle + 10 : DATA.stop], flag) == 0
    assert share(picture[CLOSE, DATA], flag) > 0.10
    for other in COLOURS:
        assert share(picture[LEGEND], other) > 0


@pytest.mark.slow
def test_heights_are_shares(tmp_path):
    """Busy in one cycle of four, a lane is a quarter as high."""
    full = share(draw(tmp_path / "a.png", np.full(40_000, RESULT))[WHOLE, DATA], RESULT)
    flags = np.zeros(40_000, np.uint8)
    flags[::4] = RESULT
    quarter = share(draw(tmp_path / "b.png", flags)[WHOLE, DATA], RESULT)
    assert quarter == pytest.approx(full / 4, rel=0.1)


def test_starved_and_stalled_share_a_lane(tmp_path):
    flags = np.tile(np.array([STARVED, STALLED], np.uint8), 20_000)
    picture = draw(tmp_path / "a.png", flags)[WHOLE, DATA]
    assert share(picture, STARVED) == pytest.approx(share(picture, STALLED), rel=0.1)
    rows = [
        np.flatnonzero([share(row, flag) > 0.5 for row in picture]) for flag in (STALLED, STARVED)
    ]
    assert rows[0].max() < rows[1].min() <= rows[0].max() + 3


@pytest.mark.slow
def test_starved_and_stalled_at_once_stay_in_their_lane(tmp_path):
    picture = draw(tmp_path / "a.png", np.full(300, STARVED | STALLED))
    assert share(picture[WHOLE, DATA], STALLED) == 0
    close = picture[CLOSE, DATA]
    assert share(close, STALLED) == pytest.approx(share(close, STARVED), rel=0.1)


def test_lanes_are_there_where_nothing_happens(tmp_path):
    picture = draw(tmp_path / "a.png", np.zeros(100))
    paper = np.array([0xF7, 0xF9, 0xFA])
    for part in (WHOLE, CLOSE):
        assert np.mean(np.all(picture[part, DATA] == paper, axis=-1)) > 0.5


def test_busy_alone_is_not_drawn(tmp_path):
    picture = draw(tmp_path / "a.png", np.full(300, BUSY))
    assert all(share(picture[WHOLE, DATA], flag) == 0 for flag in COLOURS)


def test_zoom_shows_the_first_layer_alone(tmp_path):
    flags = np.full(1000, LOADING)
    flags[100:] = RESULT
    picture = draw(tmp_path / "a.png", flags, (("short", 0), ("next", 100)))
    assert share(picture[CLOSE, DATA], LOADING) > 0.1 and share(picture[CLOSE, DATA], RESULT) == 0


@pytest.mark.slow
def test_same_timeline_gives_the_same_bytes(tmp_path):
    for name in ("a.png", "b.png"):
        draw(tmp_path / name, np.arange(500) % 32)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_leaves_nothing_behind_where_it_cannot_write(tmp_path):
    target = tmp_path / "folder.png"
    target.mkdir()
    with pytest.raises(IsADirectoryError):
        draw(target, [1])
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


@pytest.mark.parametrize("flags, layers, error, message", [
    ([1, 2], (("a", 0),), TypeError, "flags must be a uint8 array, not list"),
    (np.zeros(3), (("a", 0),), TypeError, "flags must be a uint8 array, not float64"),
    (np.zeros((3, 1), np.uint8), (("a", 0),), ValueError,
     "flags must be one number per cycle, not of shape (3, 1)"),
    (np.zeros(0, np.uint8), (("a", 0),), ValueError,
     "flags must be one number per cycle, not of shape (0,)"),
    (np.full(3, 64, np.uint8), (("a", 0),), ValueError, "flags must be under 64, not 64"),
    (np.zeros(3, np.uint8), (), ValueError, "layers must not be empty"),
    (np.zeros(3, np.uint8), (("a", 1), ("b", 1)), ValueError,
     "layers must start at increasing cycles, not at [1, 1]"),
    (np.zeros(3, np.uint8), (("a", 0), ("b", 3)), ValueError,
     "layers must start in 0..2, not at [0, 3]"),
])  # fmt: skip
def test_rejects_bad_timelines(flags, layers, error, message):
    with rejects(error, message):
        Timeline(flags, layers)
