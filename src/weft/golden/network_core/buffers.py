"""The buffers of weights, parameters and the ADD table, and the loads that write them."""

import numpy as np

from weft.network_core.addresses import join
from weft.network_core.config import ADD_TABLE_BYTES, ADD_TABLE_WORDS, PARAMETER_BYTES
from weft.network_core.descriptors import LoadTarget

__all__ = ["NetworkCoreBuffers"]


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
        core = config.array
        self.config = config
        self.b = np.zeros((config.b_words, core.cols, core.depth), np.int8)
        self.lines = np.zeros((config.lines, config.line_vectors * core.depth), np.int8)
        self.table = np.zeros((ADD_TABLE_WORDS, config.add_table_vectors * core.depth), np.int8)

    def load(self, memory, load) -> None:
        """Execute a `weft.network_core.descriptors.ListLoad` from a `MemoryArea`."""
        config, vectors = self.config, load.word_vectors(self.config)
        shape = load.words, vectors
        if load.fill:
            source = np.full((*shape, config.array.depth), load.fill_value, np.int8)
        else:
            first = join(load.source, config.banks)
            source = memory.read(first + np.arange(load.words * vectors)).reshape(*shape, -1)
        if load.target == LoadTarget.B and load.diagonal:
            source = source * self._diagonal(load.words)
        target = (self.b, self.lines, self.table)[load.target]
        words = slice(load.first_word, load.first_word + load.words)
        target[words] = source.reshape(target[words].shape)

    def added(self, x, y):
        """The sum of the words of added bytes x and results y, modulo 2^32; int32 of their shape.
        """
        words = np.ascontiguousarray(self.table[:, :ADD_TABLE_BYTES]).view("<i4")[:, 0]
        return words[x.astype(np.uint8)] + words[256 + y.astype(np.uint8).astype(int)]

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
