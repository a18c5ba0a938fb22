"""Random operands, exact products, and accelerators whose core is the golden model."""

import numpy as np
from ml_dtypes import bfloat16

from weft import Accelerator, Config, Parallel
from weft.host.emulated import GoldenTransport

__all__ = [
    "SMALL", "accelerator", "check_equal", "check_sums", "cores", "exact", "floats", "integers",
    "multiplies", "operands", "run_counted",
]

SMALL = Config(rows=3, cols=5, depth=2, a_words=64, b_words=64)


def integers(rng, dtype, *shape) -> np.ndarray:
    """Random integers over the whole range of ``dtype``."""
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def operands(m, k, n, seed=1) -> tuple[np.ndarray, np.ndarray]:
    """Random int8 A [m, k] and B [k, n]."""
    rng = np.random.default_rng(seed)
    return integers(rng, np.int8, m, k), integers(rng, np.int8, k, n)


def floats(rng, *shape, dtype=bfloat16) -> np.ndarray:
    """Random numbers of many magnitudes."""
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 9, shape)).astype(dtype)


def exact(a, b, p=0, q=0) -> np.ndarray:
    """``(a - p) @ (b - q)`` in int64; zero points of rows of A, and of columns of B."""
    p, q = np.asarray(p, np.int64), np.asarray(q, np.int64)
    p = p[:, None] if p.ndim else p
    return np.matmul(a.astype(np.int64) - p, b.astype(np.int64) - q)


def accelerator(config=SMALL, **options) -> Accelerator:
    """The driver on the golden transport."""
    return Accelerator(GoldenTransport(config), config, **options)


def cores(count, config=SMALL) -> Parallel:
    """Several of them."""
    return Parallel([accelerator(config) for _ in range(count)])


def multiplies(accelerator) -> bool:
    """Whether a product equals numpy's."""
    a = np.arange(-60, 60, dtype=np.int8).reshape(12, 10)
    return np.array_equal(accelerator.matmul(a, a.T), a.astype(int) @ a.T)


def run_counted(acc, *args, **options):
    """The bytes that a product sends, and its result."""
    result, record = acc.matmul(*args, record=True, **options)
    return record.bytes_in, result


def check_sums(result, expected):
    """Check int32 sums against exact ones of any type."""
    assert result.dtype == np.int32
    assert result.shape == expected.shape
    assert (result == expected).all()


def check_equal(result, expected):
    """Check that two arrays are equal to the bit."""
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert result.tobytes() == expected.tobytes()
