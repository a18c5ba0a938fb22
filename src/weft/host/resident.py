"""An operand that stays in the core's buffer, for as many products as like."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Resident"]


@dataclass(eq=False)
class Resident:
    """What `Accelerator.load` gives: stands in for the operand in `Accelerator.matmul`.

    Also a context manager that frees it.

    Attributes
    ----------
    side : str
        "a" or "b": which operand it is.
    shape : tuple of int
        [M, K] of A, [K, N] of B.
    dtype : numpy.dtype
        int8, uint8 or bfloat16.
    sums : array of int64 or None
        Its int8 values summed over K, for zero points: [M] or [N]. None on a bf16 core.
    page : int or None
        The first of its pages; None once freed.
    owner : Accelerator
    release : callable
        ``release(page)`` gives the pages back.
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
        """Give the pages back, once the product under way has ended. Freeing twice is fine."""
        with self.lock:
            if self.page is not None:
                self.release(self.page)
                self.page = None

    def __enter__(self) -> "Resident":
        return self

    def __exit__(self, *exception) -> None:
        self.free()
