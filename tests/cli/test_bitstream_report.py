"""The floorplan picture: every group of cells is drawn in its colour."""

from matplotlib import image
from matplotlib.colors import to_rgb

from weft.boards.blocks import Cell
from weft.cli.bitstream_report import COLOURS, floorplan_picture

CELLS = [
    Cell("array", "LUT", False, 2, 3, "SLICEB.COMB1"), Cell("tile_gate", "FF", False, 4, 1, "lc0"),
    Cell("link", "RAM", False, 6, 5, "EBR0"), Cell("epilogue", "LUT", True, 5, 5, "lc7"),
]


def test_shows_every_group(tmp_path):
    floorplan_picture(tmp_path / "a.png", CELLS, title="board: an array\ndevice")
    pixels = (255 * image.imread(tmp_path / "a.png")[:, :, :3]).reshape(-1, 3).astype(int)
    seen = {tuple(pixel) for pixel in pixels.tolist()}

    def shown(colour):
        return tuple(int(255 * part) for part in colour) in seen

    for cell in CELLS:
        assert shown(to_rgb(COLOURS[cell.group]))
    assert shown([0.5 + part / 2 for part in to_rgb(COLOURS["control"])])


def test_equal_calls_write_equal_bytes(tmp_path):
    for name in ("a", "b"):
        floorplan_picture(tmp_path / f"{name}.png", CELLS, title="board")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
