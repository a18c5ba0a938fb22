"""The contents of the memories of a language core, and their places."""

import numpy as np

from weft.golden.int4 import nibbles
from weft.language_core.config import (
    BEAT_BYTES,
    CODE_BEATS,
    COLUMNS,
    DEPTH,
    GROUPS_OF_WORD,
    LANES,
    SCALED_WORDS,
    WORD_BYTES,
)
from weft.language_core.descriptors import packed_beats

__all__ = ["Image", "matrix_words", "packed_words", "table_groups"]


def matrix_words(weights, *, across=False):
    """int8 [K, N] as words, uint8 [tiles of 8 columns * words of 16 products, 128].

    The words of a tile follow each other, or with ``across`` those of all tiles for the same 16
    products. Both sizes are padded with zeros.
    """
    k, n = weights.shape
    padded = np.pad(weights, ((0, -k % DEPTH), (0, -n % COLUMNS))).astype(np.int8)
    parts = padded.reshape(-1, DEPTH, padded.shape[1] // COLUMNS, COLUMNS)
    order = (0, 2, 3, 1) if across else (2, 0, 3, 1)
    return parts.transpose(order).reshape(-1, WORD_BYTES).view(np.uint8)


def packed_words(weights, scales):
    """Weights of int4 as words of the program memory, uint8 [words, 128].

    Each tile of 8 outputs starts at a word, and has the beats of
    `weft.language_core.descriptors.packed_beats`.

    Parameters
    ----------
    weights : int8 [outputs, inputs]
    scales : uint8 [outputs, ceil(inputs / 16)]
        1 to 15: `weft.golden.int4.scales_of`.
    """
    outputs, inputs = weights.shape
    tiles, vectors = -(-outputs // COLUMNS), -(-inputs // DEPTH)
    codes = weights // scales.astype(np.int8).repeat(DEPTH, 1)[:, :inputs]
    codes = np.pad(codes, ((0, tiles * COLUMNS - outputs), (0, vectors * DEPTH - inputs)))
    codes = codes.reshape(tiles, COLUMNS, vectors, DEPTH).swapaxes(1, 2)
    codes = nibbles(codes).reshape(tiles, vectors, CODE_BEATS, BEAT_BYTES)
    units = -(-vectors // SCALED_WORDS)
    scales = np.pad(scales, (
        (0, tiles * COLUMNS - outputs), (0, units * SCALED_WORDS - vectors),
    )).reshape(tiles, COLUMNS, units, SCALED_WORDS).transpose(0, 2, 3, 1)
    scales = nibbles(scales).reshape(tiles, units, BEAT_BYTES)
    beats = packed_beats(vectors)
    padded = beats + -beats % (WORD_BYTES // BEAT_BYTES)
    found = np.zeros((tiles, padded, BEAT_BYTES), np.uint8)
    place = 0
    for unit in range(units):
        part = codes[:, unit * SCALED_WORDS : (unit + 1) * SCALED_WORDS]
        found[:, place] = scales[:, unit]
        end = place + 1 + CODE_BEATS * part.shape[1]
        found[:, place + 1 : end] = part.reshape(tiles, -1, BEAT_BYTES)
        place = end
    return found.reshape(-1, WORD_BYTES)


def table_groups(bases, slopes):
    """The entries of a table of scales, uint16 [entries, 2]."""
    return np.stack([bases, slopes], -1).astype(np.int64) & 0xFFFF


class Image:
    """The main memory while it is filled, from word 0 on.

    Attributes
    ----------
    used : int
        Words that are taken.
    sizes : dict
        Words by the name of what they are for.
    """

    def __init__(self):
        self.used = 0
        self.sizes: dict[str, int] = {}
        self._parts: dict[int, np.ndarray] = {}

    def take(self, name: str, count: int) -> int:
        """The first of ``count`` words for ``name``, which are 0 until they are replaced."""
        first, self.used = self.used, self.used + count
        self.sizes[name] = self.sizes.get(name, 0) + count
        self._parts[first] = np.zeros((count, WORD_BYTES), np.uint8)
        return first

    def replace(self, first: int, words: np.ndarray) -> None:
        """Replace all words that were taken at ``first``: uint8 [words, 128]."""
        assert self._parts[first].shape == words.shape
        self._parts[first] = words

    def put(self, name: str, words: np.ndarray) -> int:
        """The first of the words for ``name``, uint8 [words, 128]."""
        first = self.take(name, len(words))
        self.replace(first, words)
        return first

    def put_groups(self, name: str, values: np.ndarray) -> int:
        """The first parameter group of 16-bit values; the last word is padded with zeros."""
        flat = np.asarray(values).reshape(-1).astype(np.int64) & 0xFFFF
        flat = np.pad(flat, (0, -len(flat) % (LANES * GROUPS_OF_WORD))).astype("<u2")
        return self.put(name, flat.view(np.uint8).reshape(-1, WORD_BYTES)) * GROUPS_OF_WORD

    def bytes(self) -> bytes:
        """All words that are taken."""
        return b"".join(words.tobytes() for words in self._parts.values())
