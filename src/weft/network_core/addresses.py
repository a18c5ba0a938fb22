"""Addresses of vectors: the memory is an array of banks, and neighbours lie in different banks.

Vector ``number`` lies in bank ``number % banks``, at word ``number // banks``. Lists contain both
parts, so that the hardware adds addresses without a division.
"""

__all__ = ["BANK_BITS", "WORD_BITS", "join", "split"]

BANK_BITS = 8  # lowest bits of an address in a list
WORD_BITS = 24  # the other bits, in two's complement


def split(number: int, banks: int) -> int:
    """Return the address (32 bits) of vector ``number``, or of a step of so many vectors.

    A negative step has a negative word: adding it to an address subtracts.
    """
    word, bank = divmod(number, banks)
    return (word & ((1 << WORD_BITS) - 1)) << BANK_BITS | bank


def join(address: int, banks: int) -> int:
    """Return the number of the vector at ``address``, the inverse of `split`."""
    word = address >> BANK_BITS
    word -= (word >> (WORD_BITS - 1)) << WORD_BITS
    return word * banks + (address & ((1 << BANK_BITS) - 1))
