"""Distances of pixels and rows of a map, so that the rows of the array read different banks."""

import functools
import math
from dataclasses import dataclass

import numpy as np

from weft.models.ir import Window

__all__ = [
    "MapPitches", "MapReading", "Panels", "choose_pitches", "panels_of", "panels_of_parts",
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

    def of(self, height: int, width: int, vectors: int) -> "MapPitches":
        """Return the same distances for a map whose pixels have ``vectors`` vectors."""
        span = (height - 1) * self.row_pitch + (width - 1) * self.pitch + vectors
        return MapPitches(self.pitch, self.row_pitch, span)


@dataclass(frozen=True)
class MapReading:
    """How a layer reads a map.

    Attributes
    ----------
    window : Window
    steps : int
        Array steps for each panel.
    """

    window: Window
    steps: int


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
    """Return the panels of a layer whose output pixels are groups of channels.

    A group has a power of two of vectors, and the number of banks is odd and more than ``rows``. So
    neighbouring groups lie in different banks.
    """
    return Panels(True, rows, -(-parts // rows))


@functools.lru_cache(maxsize=4096)
def _panels(height, width, pixel, row, rows, banks):
    """The panels by the distances of output pixels and rows, modulo banks."""
    if rows == 1:
        return Panels(True, 1, height * width)
    if math.gcd(pixel, banks) == 1 and (height == 1 or (row - width * pixel) % banks == 0):
        return Panels(True, rows, -(-height * width // rows))
    numbers = (np.arange(height)[:, None] * row + np.arange(width) * pixel) % banks
    found = []
    for size in range(1, rows + 1):
        if _distinct(numbers.reshape(1, -1), size, banks):
            found.append(Panels(True, size, -(-height * width // size)))
        if _distinct(numbers, size, banks):
            found.append(Panels(False, size, height * -(-width // size)))
    return min(found, key=lambda panels: (panels.count, not panels.cross))


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
    size: tuple[int, int], vectors: int, readings: list[MapReading], rows: int, banks: int, *,
    dense: bool = False,
) -> MapPitches:
    """Return the smallest pitches with the fewest array steps of all readings.

    Parameters
    ----------
    size : (int, int)
        Height and width of the map.
    vectors : int
        Of a pixel.
    dense : bool
        Pixels follow each other, whatever that costs.
    """
    height, width = size

    def pitches(pitch, row):
        return MapPitches(pitch, row, 0).of(height, width, vectors)

    def steps(found):
        return sum(
            reading.steps * panels_of(reading.window, found, rows, banks).count
            for reading in readings
        )

    simple = pitches(vectors, width * vectors)
    if dense or rows == 1 or not readings:
        return simple
    fewest = sum(
        reading.steps * -(-math.prod(reading.window.output) // rows) for reading in readings
    )
    found = []
    for pitch in range(vectors, vectors + (banks if width > 1 else 1)):
        first = (width - 1) * pitch + vectors
        for row in range(first, first + (banks if height > 1 else 1)):
            tried = pitches(pitch, row)
            found.append((steps(tried), tried.vectors, tried))
        least = min(found, key=lambda entry: entry[:2])
        if least[0] <= fewest:
            break
    return least[2]
