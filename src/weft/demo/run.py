"""`LayerRun`, the input, output and statistics of a layer on an accelerator."""

from dataclasses import dataclass

import numpy as np

__all__ = ["LayerRun"]


@dataclass(frozen=True)
class LayerRun:
    """One run of a layer on an accelerator.

    Attributes
    ----------
    name : str
        Name of the layer.
    x : int8 or bfloat16 [m, k]
        Input.
    record
        The accelerator's statistics of the product; None if it returned none.
    y : int8, bfloat16 or float32 [m, n]
        Output.
    sums : int32 or float32 [m, n], or None
        Raw sums from the accelerator, which the host finished; None if the accelerator did so.
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
