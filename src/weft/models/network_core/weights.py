"""Weights, parameters and ADD table of a layer as the memory holds them."""

from dataclasses import dataclass

import numpy as np

from weft.host.packing import COLUMN, dense_words, parameter_lines
from weft.models.network_core.layers import Addition, NetworkLayer, WeightLayout
from weft.network_core.config import ADD_TABLE_BYTES, ADD_TABLE_WORDS, NetworkCoreConfig

__all__ = ["LINES_OF_ADD", "LayerWords", "lines_of", "table_of", "words_of"]

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
        A job has a multiple of so many tiles of the layer.
    diagonal : bool
        A word has one vector in the memory.
    filled : bool
        All tiles share their words, which no memory holds.
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
    row_lines: int

    @classmethod
    def of(cls, layer: NetworkLayer, channels: int, config: NetworkCoreConfig) -> "LayerWords":
        """Return the sizes of a layer that reads a map of ``channels``."""
        cols, depth = config.array.cols, config.array.depth
        tiles, share = -(-layer.columns // cols), max(1, depth // cols)
        common = {"tiles": tiles, "row_lines": config.row_chunks}
        if layer.layout == WeightLayout.DENSE:
            vectors = -(-channels // layer.groups // depth)
            group_tiles = tiles // layer.groups
            return cls(
                tile_words=layer.taps * vectors, tap_vectors=vectors, group_tiles=group_tiles,
                group_step=vectors if layer.groups > 1 else 0,
                granule=group_tiles if layer.groups > 1 else share, diagonal=False, filled=False,
                **common,
            )
        return cls(
            tile_words=layer.taps * config.phases, tap_vectors=config.phases, group_tiles=share,
            group_step=config.phases, granule=share, diagonal=True,
            filled=layer.layout == WeightLayout.EQUAL and share == 1, **common,
        )

    def words(self, tiles: int) -> int:
        """Return the words of B of some tiles."""
        return self.tile_words if self.filled else tiles * self.tile_words


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
    """Return the words of the ADD table, uint8 [words, bytes]."""
    words = np.zeros((ADD_TABLE_WORDS, config.add_table_vectors * config.array.depth), np.uint8)
    words[:, :ADD_TABLE_BYTES] = addition.table.astype("<i4").reshape(-1, 1).view(np.uint8)
    return words
