"""One of several parts of a word, by multiplexers of two: the least logic that does it."""

from amaranth.hdl import Mux

__all__ = ["mux_tree"]


def mux_tree(word, index, width):
    """The ``index``'th part of ``width`` bits; 2 to the length of ``index`` are there, or fewer."""
    parts = [word[start : start + width] for start in range(0, len(word), width)]
    for bit in index:
        parts = [
            Mux(bit, high, low) for low, high in zip(parts[::2], parts[1::2] or parts, strict=False)
        ] + ([parts[-1]] if len(parts) % 2 and len(parts) > 1 else [])
    return parts[0]
