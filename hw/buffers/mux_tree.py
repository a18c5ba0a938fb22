"""A multiplexer of word parts, built of 2:1 multiplexers: the smallest logic for the job."""

from amaranth.hdl import Mux

__all__ = ["mux_tree"]


def mux_tree(word, index, width):
    """``word[index * width : (index + 1) * width]``.

    ``word`` has at most ``2 ** len(index)`` parts.
    """
    parts = [word[start : start + width] for start in range(0, len(word), width)]
    for bit in index:
        parts = [
            Mux(bit, high, low) for low, high in zip(parts[::2], parts[1::2] or parts, strict=False)
        ] + ([parts[-1]] if len(parts) % 2 and len(parts) > 1 else [])
    return parts[0]
