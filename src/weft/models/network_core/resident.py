"""What the host writes to a core with ``resident``, where other cores execute a list of loads."""

from collections.abc import Iterator

import numpy as np

from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import ListLoad, LoadTarget, join, unpack_list

__all__ = ["resident_writes", "setup_bytes"]


def resident_writes(config: NetworkCoreConfig, part: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the first vector, in the addresses of the host, and the bytes of each load.

    ``part`` is a setup part (`weft.models.network_core.image`): loads, and what they load.
    """
    depth = config.array.depth
    vectors = np.frombuffer(part, np.int8).reshape(-1, depth)
    for load in unpack_list(part):
        if not isinstance(load, ListLoad):
            continue
        each = load.word_vectors(config)
        if load.fill:
            data = np.full((load.words, each, depth), load.fill_value, np.int8)
        else:
            first = join(load.source, config.banks)
            data = vectors[first : first + load.words * each].reshape(load.words, each, depth)
        if load.target == LoadTarget.B and load.diagonal:
            data = data * _diagonal(config, load.words)
        yield config.loaded_vector(load.target, load.first_word), data.tobytes()


def setup_bytes(setup: tuple[bytes, ...], config: NetworkCoreConfig) -> int:
    """Return the bytes of the memory for setup parts: none if the host writes what they load."""
    return 0 if config.resident else max(map(len, setup), default=0)


def _diagonal(config, words):
    """1 where a column of a word of B has a weight of its vector; int8 [words, cols, depth]."""
    cols, depth = config.array.cols, config.array.depth
    found = np.zeros((words, cols, depth), np.int8)
    for column in range(cols):
        rows = slice(None) if cols <= depth else slice(column // depth, None, config.phases)
        found[rows, column, column % depth :: cols] = 1
    return found
