"""Choosing one of many words in logic that is small and fast: two to a LUT, then all together."""

from functools import reduce
from operator import or_

from amaranth.hdl import Signal, Value

__all__ = ["chosen"]


def chosen(m, words, index, name):
    """``words[index]``, two cycles later than ``words``, and three later than ``index``."""
    hot = Signal(len(words), name=f"{name}_hot", reset_less=True)
    m.d.sync += hot.eq(1 << index)
    masked = [
        Value.cast(word) & bit.replicate(len(Value.cast(word)))
        for word, bit in zip(words, hot, strict=True)
    ]
    parts = []
    for n in range(0, len(masked), 2):
        parts.append(Signal(len(masked[0]), name=f"{name}_part_{n}", reset_less=True))
        m.d.sync += parts[-1].eq(reduce(or_, masked[n : n + 2]))
    found = Signal(len(parts[0]), name=name, reset_less=True)
    m.d.sync += found.eq(reduce(or_, parts))
    return found
