"""A pipelined multiplexer with a one-hot select, for many words in little logic."""

from functools import reduce
from operator import or_

from amaranth.hdl import Signal, Value

__all__ = ["onehot_mux"]


def onehot_mux(m, words, index, name):
    """``words[index]``, two cycles after ``words`` and three cycles after ``index``.

    Two words share a LUT for each bit; the second stage combines the pairs.
    """
    onehot = Signal(len(words), name=f"{name}_onehot", reset_less=True)
    m.d.sync += onehot.eq(1 << index)
    masked = [
        Value.cast(word) & bit.replicate(len(Value.cast(word)))
        for word, bit in zip(words, onehot, strict=True)
    ]
    pairs = []
    for n in range(0, len(masked), 2):
        pairs.append(Signal(len(masked[0]), name=f"{name}_pair_{n}", reset_less=True))
        m.d.sync += pairs[-1].eq(reduce(or_, masked[n : n + 2]))
    selected = Signal(len(pairs[0]), name=name, reset_less=True)
    m.d.sync += selected.eq(reduce(or_, pairs))
    return selected
