"""The distances of pixels and rows in a map, maps in other maps, and panels without conflicts."""

import functools
import math
from dataclasses import dataclass

import numpy as np

from weft.models.ir import Window

__all__ = [
    "MapPitches", "MapReading", "MapView", "Panels", "choose_pitches", "panels_of",
    "panels_of_parts",
]


@dataclass(frozen=True)
class MapPitches:
    """Where the pixels of a map lie, in vectors from its first one.

    Attributes
    ----------
    pitch, row_pitch : int
        Vectors from pixel to pixel, and from row to row.
    vectors : int
        From the first vector to the end of the last pixel.
    """

    pitch: int
    row_pitch: int
    vectors: int

    def of(self, height: int, width: int, pixel_vectors: int) -> "MapPitches":
        """Return the same distances for a map whose pixels have ``pixel_vectors`` vectors."""
        span = (height - 1) * self.row_pitch + (width - 1) * self.pitch + pixel_vectors
        return MapPitches(self.pitch, self.row_pitch, span)


@dataclass(frozen=True)
class MapView:
    """Where a map lies that is a part of another map, its whole: it has no memory of its own.

    Vector v of pixel (y, x) is vector ``channel / depth + v`` of the whole's pixel
    ``(row + y * line[0] + x * pixel[0], column + y * line[1] + x * pixel[1])``. A column beyond the
    last one is a pixel of the next row if the whole is linear.

    Attributes
    ----------
    whole : int
        The place of the whole in `NetworkCoreGraph.maps`.
    channel : int
        A multiple of the channels of a vector.
    row, column : int
        The first pixel.
    line, pixel : (int, int)
        Rows and columns of the whole from row to row of the map, and from pixel to pixel.
    """

    whole: int
    channel: int = 0
    row: int = 0
    column: int = 0
    line: tuple[int, int] = (1, 0)
    pixel: tuple[int, int] = (0, 1)

    def within(self, other: "MapView") -> "MapView":
        """Return where the map lies in ``other.whole``; ``other`` is the view of its whole."""
        def step(rows, columns):
            return tuple(
                rows * line + columns * pixel
                for line, pixel in zip(other.line, other.pixel, strict=True)
            )

        row, column = step(self.row, self.column)
        return MapView(
            other.whole, other.channel + self.channel, other.row + row, other.column + column,
            step(*self.line), step(*self.pixel),
        )

    def pitches(self, whole: MapPitches) -> MapPitches:
        """Return the distances of pixels and rows of the map; its ``vectors`` are left at 0."""
        row_pitch, pitch = (
            rows * whole.row_pitch + columns * whole.pitch
            for rows, columns in (self.line, self.pixel)
        )
        return MapPitches(pitch, row_pitch, 0)

    def first(self, whole: MapPitches, depth: int) -> int:
        """Return the first vector of the map, counted from the first one of the whole."""
        pixel = self.row * whole.row_pitch + self.column * whole.pitch
        return pixel + self.channel // depth


@dataclass(frozen=True)
class MapReading:
    """How a layer reads a map.

    Attributes
    ----------
    window : Window
    steps : int
        Array steps for each panel.
    view : MapView or None
        If the layer reads a view of the map.
    """

    window: Window
    steps: int
    view: MapView | None = None

    def panels(self, pitches: MapPitches, rows: int, banks: int) -> "Panels":
        """Return `panels_of` a map with these pitches."""
        read = pitches if self.view is None else self.view.pitches(pitches)
        return panels_of(self.window, read, rows, banks)


@dataclass(frozen=True)
class Panels:
    """Panels without conflicts of banks.

    Attributes
    ----------
    cross : bool
        A panel may have pixels of several rows of the output map.
    rows : int
        Pixels of a panel.
    count : int
        Panels of the layer.
    """

    cross: bool
    rows: int
    count: int


def panels_of(window: Window, pitches: MapPitches, rows: int, banks: int) -> Panels:
    """Return the fewest panels of at most ``rows`` pixels without conflicts of banks."""
    return _panels(
        *window.output, window.stride[1] * pitches.pitch % banks,
        window.stride[0] * pitches.row_pitch % banks, rows, banks,
    )


def panels_of_parts(parts: int, rows: int) -> Panels:
    """Return the panels of a layer whose output pixels are ``parts`` groups of channels.

    A pool of a whole map is such a layer. A group has a power of two of vectors, and the number
    of banks is odd and at least ``rows``: ``rows`` neighbouring groups lie in different banks.
    """
    return Panels(True, rows, -(-parts // rows))


@functools.lru_cache(maxsize=4096)
def _panels(height, width, pixel, row, rows, banks):
    """The panels by the distances ``pixel`` and ``row`` of output pixels and rows, modulo banks."""
    if rows == 1:
        return Panels(True, 1, height * width)
    if math.gcd(pixel, banks) == 1 and (height == 1 or (row - width * pixel) % banks == 0):
        return Panels(True, rows, -(-height * width // rows))
    numbers = (np.arange(height)[:, None] * row + np.arange(width) * pixel) % banks
    possible = []
    for size in range(1, rows + 1):
        if _distinct(numbers.reshape(1, -1), size, banks):
            possible.append(Panels(True, size, -(-height * width // size)))
        if _distinct(numbers, size, banks):
            possible.append(Panels(False, size, height * -(-width // size)))
    return min(possible, key=lambda panels: (panels.count, not panels.cross))


def _distinct(numbers, size, banks):
    """Whether all panels of ``size`` neighbours along the last axis have different banks."""
    lines, width = numbers.shape
    count = -(-width // size)
    padded = np.empty((lines, count * size), np.int64)
    padded[:, :width] = numbers
    padded[:, width:] = banks + np.arange(count * size - width)  # pixels that do not exist
    panels = np.sort(padded.reshape(-1, size))
    return not (panels[:, 1:] == panels[:, :-1]).any()


def choose_pitches(
    size: tuple[int, int], pixel_vectors: int, readings: list[MapReading], rows: int, banks: int, *,
    dense: bool = False, linear: bool = False,
) -> MapPitches:
    """Return small pitches with the fewest array steps of all readings.

    Parameters
    ----------
    size : (int, int)
        Height and width of the map.
    pixel_vectors : int
        Vectors of a pixel.
    readings : list of MapReading
        One for each layer that reads the map.
    rows, banks : int
        Rows of the array, and banks of the memory.
    dense : bool
        Pixels follow each other, whatever that costs.
    linear : bool
        From the last pixel of a row to the next row it is as far as from pixel to pixel.
    """
    height, width = size

    def pitches(pitch, row):
        return MapPitches(pitch, row, 0).of(height, width, pixel_vectors)

    def steps(tried):
        return sum(
            reading.steps * reading.panels(tried, rows, banks).count for reading in readings
        )

    simple = pitches(pixel_vectors, width * pixel_vectors)
    if dense or rows == 1 or not readings:
        return simple
    fewest = sum(
        reading.steps * -(-math.prod(reading.window.output) // rows) for reading in readings
    )
    costs = []  # array steps, vectors, pitches
    # Only pitches modulo banks matter, so this many of them are all that can help.
    for pitch in range(pixel_vectors, pixel_vectors + (banks if width > 1 else 1)):
        first = width * pitch if linear else (width - 1) * pitch + pixel_vectors
        for row in range(first, first + (banks if height > 1 and not linear else 1)):
            tried = pitches(pitch, row)
            costs.append((steps(tried), tried.vectors, tried))
        least = min(costs, key=lambda entry: entry[:2])
        if least[0] <= fewest:  # no pitch takes fewer steps; a larger one seldom takes less memory
            break
    return least[2]
