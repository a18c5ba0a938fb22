"""The memories of a list: vectors relative to BASE, within BASE and LIMIT; and the buffers."""

import numpy as np

from weft.golden.int4 import from_nibbles, unpack
from weft.network_core.config import (
    ADD_TABLE_BYTES,
    ADD_TABLE_WORDS,
    FACTOR_BITS,
    PARAMETER_BYTES,
    has_single_port,
)
from weft.network_core.descriptors import ListError, LoadTarget, join

__all__ = ["ListFault", "MemoryArea", "NetworkCoreBuffers"]


class ListFault(Exception):
    """The list ends with an error.

    Attributes
    ----------
    error : ListError
    """

    def __init__(self, error: ListError):
        super().__init__(error.name)
        self.error = error


class MemoryArea:
    """The vectors that a list may use, by their numbers relative to BASE.

    Numbers are taken modulo what the hardware keeps of an address: twice the words that it can
    name, or 16 bits in a core with a microprogram.

    Parameters
    ----------
    config : NetworkCoreConfig
    data : writable buffer of ``banks * words * depth`` bytes
    base, limit : int
        First word, and first word beyond, of each bank.
    words : int, optional
        Words of each bank of this memory; ``config.words`` if absent.

    Raises
    ------
    ValueError
        If the memory has another size, or the limits do not fit it.
    """

    def __init__(self, config, data, base: int, limit: int, *, words: int | None = None):
        words = config.words if words is None else words
        bytes_ = np.frombuffer(data, np.int8)
        size = config.banks * words * config.array.depth
        if bytes_.size != size:
            raise ValueError(f"memory must have {size} bytes, not {bytes_.size}")
        if not 0 <= base <= limit <= words:
            raise ValueError(
                f"base and limit must be in 0..{words}, and base at most limit,"
                f" not {base} and {limit}"
            )
        self._vectors = bytes_.reshape(-1, config.array.depth)
        self._banks = config.banks
        self._base, self._limit = base, limit
        self._micro = has_single_port(config.array)
        kept = config.most_words if self._micro else config.address_words
        self._wrap = 2 * kept * self._banks

    def places(self, numbers) -> np.ndarray:
        """Numbers from the start of the memory; ListFault ADDRESS if one may not be used."""
        first = self._base * self._banks
        return self._checked((np.asarray(numbers, np.int64) + first) % self._wrap)

    def read_taps(self, firsts, offsets) -> np.ndarray:
        """The vectors ``offsets`` behind the numbers ``firsts``, int8 [..., depth].

        The rows of an array compare a first tap with the limits minus the offset, which has two
        bits more than an address. So their sum is not taken modulo anything.
        """
        return self._vectors[self.tap_places(firsts, offsets)]

    def tap_places(self, firsts, offsets) -> np.ndarray:
        """The numbers of these vectors from the start of the memory, as `read_taps`."""
        if self._micro:
            return self.places(firsts + offsets)
        return self._checked(self.origins(firsts) + _signed(offsets, 4 * self._wrap))

    def origins(self, firsts) -> np.ndarray:
        """Numbers from the start of the memory as a row keeps them: before it they are negative."""
        return self.signed(np.asarray(firsts, np.int64) + self._base * self._banks)

    @property
    def vectors(self) -> int:
        """Vectors of the whole memory."""
        return len(self._vectors)

    def signed(self, numbers) -> np.ndarray:
        """Numbers modulo what the hardware keeps, as numbers with a sign: steps back are negative.
        """
        return _signed(numbers, self._wrap)

    def _checked(self, places):
        """The places from the start of the memory, if all of them may be used."""
        words = places // self._banks
        if ((words < self._base) | (words >= self._limit)).any():
            raise ListFault(ListError.ADDRESS)
        return places

    def read(self, numbers) -> np.ndarray:
        """The vectors with these numbers, int8 [..., depth]."""
        return self._vectors[self.places(numbers)]

    def read_columns(self, numbers, columns: int) -> np.ndarray:
        """Bytes 0 to ``columns - 1`` from each of the vectors ``numbers`` on; int8 [..., columns].
        """
        return self._vectors[self._columns(numbers, columns)]

    def write_columns(self, numbers, values) -> None:
        """Write ``values[..., n]`` to byte ``n`` from vector ``numbers[...]`` on."""
        self._vectors[self._columns(numbers, values.shape[-1])] = values

    def _columns(self, numbers, columns):
        """The indices of bytes 0 to ``columns - 1`` from each of the vectors ``numbers`` on."""
        depth = self._vectors.shape[1]
        column = np.arange(columns)
        vectors = self.places(np.asarray(numbers)[..., None] + np.arange(-(-columns // depth)))
        return vectors[..., column // depth], column % depth


def _signed(numbers, modulus):
    """Numbers modulo ``modulus``, from minus a half of it on."""
    return (np.asarray(numbers, np.int64) + modulus // 2) % modulus - modulus // 2


class NetworkCoreBuffers:
    """The B buffer, the parameter buffer and the ADD table.

    They keep their contents from list to list. Words that no load has written are 0.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    b : int8 [b_words, cols, depth]
    lines : int8 [lines, line_vectors * depth]
    table : int8 [ADD_TABLE_WORDS, add_table_vectors * depth]
    """

    def __init__(self, config):
        array = config.array
        self.config = config
        self.b = np.zeros((config.b_words, array.cols, array.depth), np.int8)
        self.lines = np.zeros((config.lines, config.line_vectors * array.depth), np.int8)
        self.table = np.zeros((ADD_TABLE_WORDS, config.add_table_vectors * array.depth), np.int8)

    def load(self, memory, load) -> None:
        """Execute a `weft.network_core.descriptors.ListLoad` from a `MemoryArea`."""
        config = self.config
        shape = load.words, load.word_vectors(config), config.array.depth
        if load.fill:
            source = np.full(shape, load.fill_value, np.int8)
        else:
            first = join(load.source, config.banks)
            source = memory.read(first + np.arange(load.vectors(config)))
            source = (self._unpacked(source, load.words) if load.packed else source).reshape(shape)
        if load.target == LoadTarget.B and load.diagonal:
            source = source * self._diagonal(load.words)
        target = (self.b, self.lines, self.table)[load.target]
        words = slice(load.first_word, load.first_word + load.words)
        target[words] = source.reshape(target[words].shape)

    def write(self, number: int, data: bytes) -> None:
        """Write whole vectors from the host's vector ``number`` on, of a core with ``resident``."""
        region, place = divmod(number, self.config.region)
        vectors = (self.b, self.lines, self.table)[region - 1].reshape(
            -1, self.config.array.depth
        )
        new = np.frombuffer(data, np.int8).reshape(-1, self.config.array.depth)
        vectors[place : place + len(new)] = new

    def added(self, x, y):
        """The sum of the words of added bytes x and results y, modulo 2^32; int32 of their shape.
        """
        words = self.words()
        return words[x.astype(np.uint8)] + words[256 + y.astype(np.uint8).astype(int)]

    def exponentials(self):
        """The first 256 words of the ADD table, int32: those of a job with ``softmax``."""
        return self.words()[:256]

    def words(self):
        """All words of the ADD table, int32."""
        return np.ascontiguousarray(self.table[:, :ADD_TABLE_BYTES]).view("<i4")[:, 0]

    def multiplied(self, x, y):
        """The product of the factors of added bytes x and results y; int32 of their shape.

        A factor is a word modulo 2^16, as a signed value.
        """
        factors = np.ascontiguousarray(self.table[:, : FACTOR_BITS // 8]).view("<i2")[:, 0]
        first = factors[x.astype(np.uint8)].astype(np.int32)
        return first * factors[256 + y.astype(np.uint8).astype(int)]

    def _unpacked(self, vectors, words):
        """The weights of ``words`` words of B of int4, int8 [vectors, depth]."""
        config, cols, depth = self.config, self.config.array.cols, self.config.array.depth
        beats = vectors.reshape(-1, config.beat_bytes)
        found = np.zeros((words, cols, depth), np.int8)
        for first in range(0, words, config.scaled_words):
            count = min(config.scaled_words, words - first)
            scales, codes, beats = np.split(beats, [1, 1 + count * config.code_beats])
            scales = from_nibbles(scales).reshape(-1)[: count * cols, None]
            codes = from_nibbles(codes).reshape(count * cols, depth).astype(np.int8)
            codes = (codes ^ 8) - 8  # signed
            found[first : first + count] = unpack(codes, scales, depth).reshape(count, cols, depth)
        return found

    def _diagonal(self, words):
        """1 where column i of word w takes byte d of its vector; int8 [words, cols, depth]."""
        cols, depth = self.config.array.cols, self.config.array.depth
        w, i, d = np.ogrid[:words, :cols, :depth]
        takes = d % cols == i % depth
        if cols > depth:
            takes = takes & (i // depth == w % self.config.phases)
        return np.broadcast_to(takes, (words, cols, depth)).astype(np.int8)

    def parameters(self, lines, columns):
        """Biases, multipliers and shifts of columns, each int64 of the shape of ``lines``.

        Parameters
        ----------
        lines : array of int
            The line of each column.
        columns : array of int
            The position of each column in its line.
        """
        lines, columns = np.broadcast_arrays(lines, columns)
        first, last = lines.min(), lines.max()
        if last >= self.config.lines:
            raise ValueError(
                f"lines of a job must be in 0..{self.config.lines - 1}, not {first}..{last}"
            )
        places = columns[..., None] * PARAMETER_BYTES + np.arange(PARAMETER_BYTES)
        taken = self.lines[lines[..., None], places]
        bias, multiplier = (
            np.ascontiguousarray(taken[..., at : at + 4]).view("<i4")[..., 0].astype(np.int64)
            for at in (0, 4)
        )
        return bias, multiplier, taken[..., 8].astype(np.int64)
