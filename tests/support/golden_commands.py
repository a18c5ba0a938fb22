"""Commands for a golden transport: jobs, loads of operands, and their results."""

import numpy as np

from weft.commands import Job, JobFlag, Load, LoadFlag, Status
from weft.config import Config
from weft.geometry import memories
from weft.host.packing import pack, unpack

__all__ = ["CONFIG", "FEED", "job", "load", "numbers", "product", "result"]

CONFIG = Config(rows=2, cols=3, depth=2, a_words=64, b_words=64, bytes_in=8, bytes_out=8, jobs=2)
FEED = JobFlag.FEED_A | JobFlag.FEED_B


def numbers(*shape, seed=0) -> np.ndarray:
    """Random int8."""
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def load(region, matrix, page=0, flags=LoadFlag.FEED, config=CONFIG) -> bytes:
    """A load of all of A, or of B or C transposed."""
    operand = memories(config)[region]
    panels, words = operand.panels(matrix.shape[0]), operand.panel_words(matrix.shape[1])
    pitch = operand.panel_pages(matrix.shape[1])
    header = Load(region, page, pitch, panels, words, flags).pack()
    return header.ljust(config.bytes_in, b"\0") + pack(matrix, operand)


def job(m, n, k, tag, flags=FEED, **pages) -> bytes:
    """The header of a job for a core of 2 rows and 3 columns; both operands start at page 0."""
    places = {"a_page": 0, "a_pitch": 1, "a_pages": -(-m // 2)}
    places |= {"b_page": 0, "b_pitch": 1, "b_pages": -(-n // 3)} | pages
    return Job(m, n, k, **places, tag=tag, flags=flags).pack()


def result(transport, m, n, tag, dtype=np.int32, config=CONFIG) -> list:
    """The results of the next job, which must end without an error, as numbers of Python."""
    packet = transport.receive(0)
    assert (packet.tag, packet.last, packet.status) == (tag, True, Status(0))
    found = unpack(packet.data, m, n, config, dtype)
    return found.tolist() if found.dtype.kind == "i" else found.astype(np.float32).tolist()


def product(a, b) -> list:
    """The exact product of int8 matrices."""
    return (a.astype(int) @ b.astype(int)).tolist()
