"""The memory as a list sees it: vectors relative to BASE, within BASE and LIMIT."""

import numpy as np

from weft.network_core.config import has_single_port
from weft.network_core.descriptors import ListError

__all__ = ["ListFault", "MemoryArea"]


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
        if self._micro:
            return self.read(firsts + offsets)
        firsts = self.signed(np.asarray(firsts, np.int64) + self._base * self._banks)
        return self._vectors[self._checked(firsts + _signed(offsets, 4 * self._wrap))]

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
