"""Pieces of a layer: which pixels, and which taps of its kernel, a job computes.

A tile whose words exceed B is computed by several jobs, one after the other, each with some of the
taps. The sums stay in the array between them, so each of these jobs has one panel.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from weft.models.ir import Window
from weft.models.network_core.layers import Refusal
from weft.models.network_core.map_pitches import Panels
from weft.models.network_core.weights import LINES_OF_ADD, LayerWords
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import ListJob, places

__all__ = [
    "Area", "Piece", "Shape", "Taps", "check_window", "job_limits", "needed", "pieces_of",
]


@dataclass(frozen=True)
class Area:
    """A rectangle of the pixels of a job's map: its first row and column, and its size."""

    y: int
    x: int
    height: int
    width: int


@dataclass(frozen=True)
class Taps:
    """A block of the vectors of a kernel, whose words of B follow each other.

    Attributes
    ----------
    y, x, vector : int
        The first one: its row and its column in the kernel, and its place in its tap.
    height, width, vectors : int
        Rows; columns in each row; vectors in each tap.
    """

    y: int
    x: int
    vector: int
    height: int
    width: int
    vectors: int

    @property
    def words(self) -> int:
        """Words of B of a tile."""
        return self.height * self.width * self.vectors


@dataclass(frozen=True)
class Piece:
    """The work of a job on each of its tiles.

    Attributes
    ----------
    area : Area
    taps : Taps
    first_word : int
        Of the taps, among the words of a tile.
    partial : bool
        The next job goes on with the sums.
    """

    area: Area
    taps: Taps
    first_word: int
    partial: bool


@dataclass(frozen=True)
class Shape:
    """The pixels and the taps of all jobs of a layer.

    Attributes
    ----------
    output : (int, int)
        Rows and columns of the pixels.
    kernel : (int, int)
        Rows and columns of the taps.
    """

    output: tuple[int, int]
    kernel: tuple[int, int]

    def whole(self, sizes: LayerWords) -> Piece:
        """Return all pixels and all taps."""
        taps = Taps(0, 0, 0, *self.kernel, sizes.tap_vectors)
        return Piece(Area(0, 0, *self.output), taps, 0, False)


def pieces_of(
    shape: Shape, sizes: LayerWords, panels: Panels, words: int
) -> tuple[Piece, ...]:
    """Return the pieces of a tile of at most ``words`` words each, in the order of their jobs.

    ``words`` are at least `LayerWords.least_words`. The pieces with the same pixels follow each
    other. If all taps of the tile are one piece, it has all pixels.
    """
    whole = shape.whole(sizes)
    blocks = list(_blocks(whole.taps, words))
    if len(blocks) == 1:
        return (whole,)
    return tuple(
        Piece(
            area, taps, (taps.y * shape.kernel[1] + taps.x) * sizes.tap_vectors + taps.vector,
            number < len(blocks) - 1,
        )
        for area in _areas(shape.output, panels) for number, taps in enumerate(blocks)
    )


def _blocks(taps, words) -> Iterator[Taps]:
    """Yield blocks of whole rows of the kernel, of whole taps, or of vectors of a tap."""
    row = taps.width * taps.vectors
    if words >= row:
        for y, height in _equal(taps.height, words // row):
            yield Taps(y, 0, 0, height, taps.width, taps.vectors)
    elif words >= taps.vectors:
        for y in range(taps.height):
            for x, width in _equal(taps.width, words // taps.vectors):
                yield Taps(y, x, 0, 1, width, taps.vectors)
    else:
        for y in range(taps.height):
            for x in range(taps.width):
                for vector, vectors in _equal(taps.vectors, words):
                    yield Taps(y, x, vector, 1, 1, vectors)


def _equal(count, most) -> Iterator[tuple[int, int]]:
    """Yield the first one and the size of the fewest parts, whose sizes differ by at most 1."""
    parts = -(-count // most)
    for part in range(parts):
        first = part * count // parts
        yield first, (part + 1) * count // parts - first


def _areas(output, panels) -> Iterator[Area]:
    """Yield areas of one panel each: whole rows of the map, or a part of a row.

    A panel at the start of the map has no conflict of banks, so a part of it has none, nor has one
    that lies elsewhere.
    """
    height, width = output
    if panels.cross and width <= panels.rows:
        for y in range(0, height, panels.rows // width):
            yield Area(y, 0, min(panels.rows // width, height - y), width)
        return
    for y in range(height):
        for x in range(0, width, panels.rows):
            yield Area(y, x, 1, min(panels.rows, width - x))


def job_limits(
    sizes: LayerWords, config: NetworkCoreConfig, adds: bool = False
) -> tuple[tuple[str, str, int, int], ...]:
    """Return for both buffers: what they have, the field that says how much, and its value.

    Then how much the smallest job of a layer needs: no smaller value of the field would do. It is
    a piece of a tile, if the columns of a tile are whole vectors of the output map.
    """
    least, words = 1, sizes.least_words
    if config.array.cols < config.array.depth:
        least = min(sizes.granule, sizes.tiles)
        words = sizes.words(least)
    return (
        ("words of B", "b_words", config.b_words, words),
        ("parameter lines", "lines", config.lines, sizes.row_lines * least + adds * LINES_OF_ADD),
    )


def needed(field: str, least: int) -> str:
    """Return the rule for a field of the table, for a network that needs ``least``."""
    return f"[network_core] {field} must be at least {least:,}"


def check_window(window: Window) -> None:
    """Raise Refusal if a number of a window has more bits than its field in `ListJob`."""
    bits = {place.name: place.bits for place in places(ListJob)}
    top, _, left, _ = window.padding
    for name, sizes, limit in (
        ("kernel", window.kernel, (1 << bits["kernel_width"]) - 1),
        ("stride", window.stride, (1 << bits["stride_x"]) - 1),
        ("dilation", window.dilation, (1 << bits["dilation_x"]) - 1),
        ("input", window.input, (1 << bits["in_width"]) - 1),
        ("output", window.output, (1 << bits["out_width"]) - 1),
        ("padding", (abs(top), abs(left)), (1 << bits["first_x"] - 1) - 1),
    ):
        if max(sizes) > limit:
            raise Refusal(
                f"its {name} must be at most {limit} x {limit}, not {sizes[0]} x {sizes[1]}"
            )
