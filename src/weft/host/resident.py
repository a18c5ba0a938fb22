"""An operand that stays in the core's buffer for any number of products."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Resident"]


@dataclass(eq=False)
class Resident:
    """A loaded operand, from `Accelerator.load`; `Accelerator.matmul` accepts it as ``a`` or ``b``.

    It is also a context manager that frees the operand at its end.

    Attributes
    ----------
    side : str
        "a" or "b".
    shape : tuple of int
        (M, K) for A, (K, N) for B.
    dtype : numpy.dtype
        int8, uint8 or bfloat16.
    sums : array of int64 or None
        Sums of its int8 values over K, for zero points: [M] or [N]. None on a bf16 core.
    page : int or None
        First page in the buffer; None once freed.
    owner : Accelerator
        Accelerator into which it is loaded.
    release : callable
        ``release(page)`` frees the pages.
    lock : RLock
        Held by the accelerator while it uses the pages.
    """

    side: str
    shape: tuple[int, int]
    dtype: np.dtype
    sums: np.ndarray | None
    page: int | None
    owner: object
    release: Callable[[int], None]
    lock: threading.RLock

    def free(self) -> None:
        """Free the pages after the current product has ended. Freeing twice has no effect."""
        with self.lock:
            if self.page is not None:
                self.release(self.page)
                self.page = None

    def __enter__(self) -> "Resident":
        return self

    def __exit__(self, *exception) -> None:
        self.free()
