"""Weights, parameters and ADD tables as the memory holds them, and their places in the buffers."""

import bisect
import copy
import operator
from dataclasses import dataclass

import numpy as np

from weft.golden.int4 import nibbles, scales_of
from weft.host.packing import COLUMN, dense_words, parameter_lines
from weft.models.network_core.layers import Addition, NetworkLayer, WeightLayout
from weft.network_core.config import ADD_TABLE_BYTES, NetworkCoreConfig

__all__ = [
    "LINES_OF_ADD", "BufferPlaces", "LayerWords", "lines_of", "packed_words", "table_of",
    "words_of",
]


_end_of, _job_of = operator.itemgetter(1), operator.itemgetter(2)


class BufferPlaces:
    """The parts of a buffer that jobs use; a new part lies where the fewest jobs must end before.

    Parameters
    ----------
    size : int
        Words of the buffer.
    """

    def __init__(self, size: int):
        self._size = self._free = size
        self._next = 0
        self._used: list[tuple[int, int, int]] = []  # start, end, job; in the order of jobs
        self._sorted: list[tuple[int, int, int]] = []  # the same ones by their starts

    def copied(self) -> "BufferPlaces":
        """Return places that go on from these."""
        other = copy.copy(self)
        other._used, other._sorted = self._used.copy(), self._sorted.copy()
        return other

    def follow(self, other: "BufferPlaces", ends: list[int], other_ends: list[int]) -> bool:
        """Whether the same words are used as in ``other``, by jobs that end no earlier.

        ``ends`` has when each job ends, from the second entry on.
        """
        return self._next == other._next and len(self._used) == len(other._used) and all(
            mine[:2] == its[:2] and ends[mine[2] + 1] >= other_ends[its[2] + 1]
            for mine, its in zip(reversed(self._used), reversed(other._used), strict=True)
        )

    def take(self, size: int, job: int) -> tuple[int, int]:
        """Return the first word of a part, and the jobs that must have ended before its load.

        ``job`` grows from part to part. Nothing is taken for a size of 0.
        """
        if not size:
            return 0, 0
        start, waits = self._next, 0
        if start + size > self._size or self._sorted and self._sorted[-1][1] > start:
            start, waits = self._found(size)
        end = start + size
        if waits:
            self._release(start, end)
        self._next = end
        self._free -= size
        self._used.append((start, end, job))
        bisect.insort(self._sorted, (start, end, job))
        return start, waits

    def _release(self, start, end):
        """Remove the parts between two words."""
        first = last = bisect.bisect_right(self._sorted, start, key=_end_of)
        while last < len(self._sorted) and self._sorted[last][0] < end:
            entry = self._sorted[last]
            self._free += entry[1] - entry[0]
            del self._used[bisect.bisect_left(self._used, entry[2], key=_job_of)]
            last += 1
        del self._sorted[first:last]

    def _found(self, size):
        """Return the place for ``size`` words with the fewest jobs, and these jobs.

        Of places with equal jobs the first one counts: after the latest part; the first words;
        after a part, the oldest part first.
        """
        room, waits, found = self._free, 0, []
        if room >= size:
            found = self._gaps(size)
        jobs = iter(self._used)
        while not found:
            part = next(jobs)
            room, waits = room + part[1] - part[0], part[2] + 1
            if room >= size:  # no gap was large enough before, so this part is in one that is
                found = self._gap_with(part, size)
        if any(low <= self._next <= high for low, high, _ in found):
            return self._next, waits
        if not found[0][0]:
            return 0, waits
        ends = (
            entry for low, high, entries in found for entry in entries if low <= entry[1] <= high
        )
        return min(ends, key=_job_of)[1], waits

    def _gaps(self, size):
        """Return the places for ``size`` words between all parts.

        Each gap is the first and the last place in it, and the parts that end there.
        """
        found, low, before = [], 0, ()
        for entry in self._sorted:
            if entry[0] - low >= size:
                found.append((low, entry[0] - size, before))
            low, before = entry[1], (entry,)
        if self._size - low >= size:
            found.append((low, self._size - size, before))
        return found

    def _gap_with(self, part, size):
        """Return the gap of a part, as `_gaps`, when it and all older parts are removed."""
        parts, job = self._sorted, part[2]
        first = last = bisect.bisect_left(parts, part)
        while first and parts[first - 1][2] <= job:
            first -= 1
        while last < len(parts) and parts[last][2] <= job:
            last += 1
        low = parts[first - 1][1] if first else 0
        high = (parts[last][0] if last < len(parts) else self._size) - size
        return [(low, high, parts[max(0, first - 1) : last])] if low <= high else []


LINES_OF_ADD = 1


@dataclass(frozen=True)
class LayerWords:
    """The sizes of a layer in the buffers.

    Attributes
    ----------
    tiles : int
        Tiles of a panel.
    tile_words : int
        Words of B of a tile: its array steps.
    tap_vectors : int
    group_tiles, group_step : int
        As in `weft.network_core.descriptors.ListJob`.
    granule : int
        A job of whole tiles has a multiple of so many of them.
    diagonal : bool
        A word has one vector in the memory.
    filled : bool
        All tiles share their words, which no memory holds.
    packed : bool
        The weights are of int4, and the memory holds them as `packed_words`.
    row_lines : int
        Parameter lines of a tile.
    """

    tiles: int
    tile_words: int
    tap_vectors: int
    group_tiles: int
    group_step: int
    granule: int
    diagonal: bool
    filled: bool
    packed: bool
    row_lines: int

    @classmethod
    def of(cls, layer: NetworkLayer, channels: int, config: NetworkCoreConfig) -> "LayerWords":
        """Return the sizes of a layer that reads a map of ``channels``."""
        cols, depth = config.array.cols, config.array.depth
        tiles, share = -(-layer.columns // cols), max(1, depth // cols)
        common = {"tiles": tiles, "row_lines": config.row_chunks}
        if layer.is_of_unit:  # one job, without words and lines
            return cls(
                tiles=tiles, tile_words=0, tap_vectors=1, group_tiles=tiles, group_step=0,
                granule=tiles, diagonal=True, filled=True, packed=False, row_lines=0,
            )
        if layer.layout == WeightLayout.DENSE:
            vectors = -(-channels // layer.groups // depth)
            group_tiles = tiles // layer.groups
            return cls(
                tile_words=layer.taps * vectors, tap_vectors=vectors, group_tiles=group_tiles,
                group_step=vectors if layer.groups > 1 else 0,
                granule=group_tiles if layer.groups > 1 else share, diagonal=False, filled=False,
                packed=config.int4 and layer.b < 0 and _is_int4(layer.weights, depth), **common,
            )
        return cls(
            tile_words=layer.taps * config.phases, tap_vectors=config.phases, group_tiles=share,
            group_step=config.phases, granule=share, diagonal=True,
            filled=layer.layout == WeightLayout.EQUAL and share == 1, packed=False, **common,
        )

    def words(self, tiles: int) -> int:
        """Return the words of B of some tiles."""
        return self.tile_words if self.filled else tiles * self.tile_words

    def vectors(self, words: int, config: NetworkCoreConfig) -> int:
        """Return the vectors in the memory of some words of B, if they are not ``filled``."""
        if self.packed:
            return config.packed_vectors(words)
        return words if self.diagonal else words * config.array.cols

    @property
    def least_words(self) -> int:
        """The fewest words of B of a job, if a tile may be several jobs: a vector, or a tap."""
        return self.tap_vectors if self.diagonal else 1


def words_of(
    layer: NetworkLayer, sizes: LayerWords, config: NetworkCoreConfig
) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of all words, int8 [tiles, vectors, depth], and the pair sums [columns].

    The vectors of a word follow each other, the words of a tile too: for ky: for kx: for vector.
    The pair sum of a column is ``sum(w[2i] * w[2i + 1])`` over its weights, 0 on a diagonal.
    """
    cols, depth = config.array.cols, config.array.depth
    if sizes.diagonal:
        return _diagonal(layer, sizes, cols, depth), np.zeros(layer.columns, np.int64)
    return dense_words(layer.weights, sizes.tap_vectors, sizes.tiles, config)


def _is_int4(weights, depth):
    """Whether all vectors of weights, int8 [taps, channels, columns], are of int4."""
    taps, channels, columns = weights.shape
    vectors = weights.swapaxes(1, 2).reshape(taps * columns, channels)
    return scales_of(vectors, depth) is not None


def packed_words(vectors: np.ndarray, config: NetworkCoreConfig) -> np.ndarray:
    """Return the vectors of words of B, int8 [vectors, depth], packed: int8 [vectors, depth].

    `weft.network_core.descriptors.ListLoad.vectors` has the order. All weights must be of int4.
    """
    cols, depth = config.array.cols, config.array.depth
    scales = scales_of(vectors, depth)
    codes = nibbles(vectors // scales.astype(np.int8)).reshape(-1, cols * depth // 2)
    scales = scales.reshape(-1, cols)
    found = []
    for first in range(0, len(codes), config.scaled_words):
        words = slice(first, first + config.scaled_words)
        of_words = nibbles(scales[words].reshape(-1))
        found += [np.pad(of_words, (0, config.beat_bytes - len(of_words))), codes[words].ravel()]
    return np.concatenate(found).view(np.int8).reshape(-1, depth)


def _diagonal(layer, sizes, cols, depth):
    """The vectors of diagonal words: the weights of the channels that the word multiplies."""
    taps, columns = layer.weights.shape
    if depth <= cols:
        whole = np.zeros((taps, sizes.tiles * cols), np.int8)
        whole[:, :columns] = layer.weights
        whole = whole.reshape(taps, sizes.tiles, cols // depth, depth).transpose(1, 0, 2, 3)
        return whole.reshape(sizes.tiles, -1, depth)
    share = depth // cols
    vectors = -(-columns // depth)
    whole = np.zeros((taps, vectors * depth), np.int8)
    whole[:, :columns] = layer.weights
    whole = whole.reshape(taps, vectors, share, cols).transpose(1, 2, 0, 3)
    words = np.zeros((vectors, share, taps, share, cols), np.int8)
    for part in range(share):
        words[:, part, :, part] = whole[:, part]
    return words.reshape(vectors * share, taps, depth)[: sizes.tiles]


def lines_of(
    layer: NetworkLayer, sizes: LayerWords, pairs: np.ndarray, config: NetworkCoreConfig
) -> tuple[np.ndarray, np.ndarray]:
    """Return the parameter lines of all tiles and the ones of ADD, uint8 [lines, bytes].

    ``pairs`` are the pair sums of the columns; the sums of a `corrected` MAC cell contain them.
    """
    lanes = config.array.lanes
    columns = np.zeros(sizes.tiles * sizes.row_lines * lanes, COLUMN)
    used = columns[: layer.columns]
    bias = layer.bias - pairs if config.array.cell.corrected else layer.bias
    used["bias"], used["multiplier"], used["shift"] = (
        bias.astype(np.int32), layer.multiplier, layer.shift
    )
    added = np.zeros(0, COLUMN)
    if layer.addition is not None:
        added = np.zeros(LINES_OF_ADD * lanes, COLUMN)
        added["multiplier"], added["shift"] = layer.addition.multiplier, layer.addition.shift
    return parameter_lines(columns, config), parameter_lines(added, config)


def table_of(addition: Addition, config: NetworkCoreConfig) -> np.ndarray:
    """Return the words of the ADD table from its first one on, uint8 [words, bytes]."""
    words = np.zeros((addition.table.size, config.add_table_vectors * config.array.depth), np.uint8)
    words[:, :ADD_TABLE_BYTES] = addition.table.astype("<i4").reshape(-1, 1).view(np.uint8)
    return words
