"""The window fetch: cycles and reads that bring the windows of a layer into the A buffer.

A panel has ``rows`` consecutive pixels of the output map. For each row of the kernel, the fetch
reads the run of input pixels that the panel needs, once, ``port`` bytes a cycle. A vector
is ``depth`` channels of a pixel. There are two ways to store it; a bank takes one a cycle.

strip
    Each vector is stored once. Vector c of column u of the run is number ``u * pitch + c``, in bank
    ``number % banks``. All rows of the array read different banks, as ``pitch * stride`` and
    the number of banks have no common factor, and there are more banks than rows.
copies
    Each row of the array has ``sub`` banks, and each vector is stored for all rows that read it.
    Vector c of tap (ky, kx) is word ``(ky * kw + kx) * groups + c``, in bank ``word % sub``.

Pixels outside the map are written, too, but not read.
"""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache

from weft.network.ir import Window

__all__ = ["WindowBuffer", "FetchCost", "fetch"]


@dataclass(frozen=True)
class WindowBuffer:
    """The A buffer and its way to the memory.

    Attributes
    ----------
    rows, depth : int
        Pixels of a panel, and bytes of a vector.
    port : int
        Bytes of a memory word.
    sub : int
        Banks of a row; 0: a strip.
    """

    rows: int
    depth: int
    port: int
    sub: int

    @property
    def banks(self) -> int:
        """Number of banks."""
        return self.rows * self.sub or max(self.rows + 1, self.port // self.depth)

    def pitch(self, groups: int, stride: int) -> int:
        """Vectors from column to column of a strip."""
        pitch = groups
        while self.rows > 1 and math.gcd(pitch * stride, self.banks) > 1:
            pitch += 1
            if pitch > groups + self.banks:
                raise ValueError(f"stride must have no factor of {self.banks} banks, not {stride}")
        return pitch


@dataclass(frozen=True)
class FetchCost:
    """The fetch of all panels of a layer.

    Attributes
    ----------
    cycles : int
        Cycles in which the fetch writes the A buffer.
    reads : int
        Words that it reads from the memory.
    first : int
        Cycles of the first panel.
    panels : int
    words : int
        Words of a bank that the largest panel takes.
    """

    cycles: int
    reads: int
    first: int
    panels: int
    words: int

    def times(self, factor: int) -> "FetchCost":
        """The fetch of all panels ``factor`` times."""
        return FetchCost(
            self.cycles * factor, self.reads * factor, self.first, self.panels, self.words
        )


@cache
def fetch(window: Window, channels: int, buffer: WindowBuffer, used: int = 0) -> FetchCost:
    """Price the fetch of a layer.

    Parameters
    ----------
    window : Window
    channels : int
        Channels of the stored map.
    buffer : WindowBuffer
    used : int
        Channels that are fetched; by default all.
    """
    used = used or channels
    (height, width), kernel_y = window.input, window.kernel[0]
    geometry = window, channels, used, buffer
    cycles, reads, first, panels, vectors = 0, 0, 0, 0, 0
    for start in range(0, math.prod(window.output), buffer.rows):
        size = 0
        for row, column, pixels in _segments(start, buffer.rows, *window.output):
            for ky in range(kernel_y):
                y = row * window.stride[0] - window.padding[0] + ky * window.dilation[0]
                # Only the place of the run in a memory word matters.
                offset = y * width * channels % buffer.port if 0 <= y < height else -1
                run = _run(geometry, pixels, column, offset)
                cycles, reads, size = cycles + run[0], reads + run[1], size + run[2]
        panels += 1
        first, vectors = first or cycles, max(vectors, size)
    words = -(-vectors // buffer.banks)
    if buffer.sub:
        words = -(-math.prod(window.kernel) * (used // buffer.depth) // buffer.sub)
    return FetchCost(cycles, reads, first, panels, words)


def _segments(start, rows, height, width):
    """The parts of a panel in each row of the output map: row, first column, pixels."""
    end = min(start + rows, height * width)
    while start < end:
        row, column = divmod(start, width)
        pixels = min(end - start, width - column)
        yield row, column, pixels
        start += pixels


@cache
def _run(geometry, pixels, column, offset):
    """Cycles, reads and vectors of a strip, for one row of the kernel for ``pixels`` outputs.

    ``offset`` is the place of the row of the map in a memory word; below 0 it is outside the map.
    """
    window, channels, used, buffer = geometry
    groups, stride = used // buffer.depth, window.stride[1]
    left = column * stride - window.padding[2]
    readers = defaultdict(list)  # by column of the map: rows of the panel, and their taps
    for p in range(pixels):
        for kx in range(window.kernel[1]):
            readers[left + p * stride + kx * window.dilation[1]].append((p, kx))
    pitch = 0 if buffer.sub else buffer.pitch(groups, stride)
    beats = defaultdict(Counter)  # by memory word: vectors that each bank takes
    read = set()
    for x, taps in readers.items():
        for c in range(groups):
            beat = "outside"
            if offset >= 0 and 0 <= x < window.input[1]:
                beat = (offset + x * channels + c * buffer.depth) // buffer.port
                read.add(beat)
            if buffer.sub:
                beats[beat].update((p, (kx * groups + c) % buffer.sub) for p, kx in taps)
            else:
                beats[beat][((x - left) * pitch + c) % buffer.banks] += 1
    cycles = sum(max(vectors.values()) for vectors in beats.values())
    # A strip starts in the bank that the strip of the segment before leads to.
    return cycles, len(read), (max(readers) - left + 1) * pitch + buffer.banks - 1
