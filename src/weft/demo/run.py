"""What one layer did on an accelerator."""

from dataclasses import dataclass

import numpy as np

__all__ = ["LayerRun"]


@dataclass(frozen=True)
class LayerRun:
    """What one layer did on an accelerator.

    Attributes
    ----------
    name : str
    x : int8 or bfloat16 [m, k]
        What went in.
    record
        The accelerator's record of the job; None where it gives none.
    y : int8, bfloat16 or float32 [m, n]
        What came out.
    sums : int32 or float32 [m, n], or None
        Raw results of the accelerator, which the host finished; None where it did that too.
    """

    name: str
    x: np.ndarray
    record: object
    y: np.ndarray
    sums: np.ndarray | None = None

    @property
    def m(self) -> int:
        return self.x.shape[0]

    @property
    def k(self) -> int:
        return self.x.shape[1]

    @property
    def n(self) -> int:
        return self.y.shape[1]
