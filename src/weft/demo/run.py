"""`Runnable`, a layer that an accelerator computes, and `LayerRun`, its results."""

from dataclasses import dataclass

import numpy as np

__all__ = ["LayerRun", "Runnable"]


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


class Runnable:
    """A fully connected layer with ``weights`` [N, K], computed wholly or partly on the core.

    A subclass has ``on_chip(config)``, whether the core of a Config computes the whole layer,
    ``arguments(on_chip)``, the arguments of the product besides the operands, and ``finish(sums)``,
    the rest of the layer on the host.
    """

    @property
    def k(self) -> int:
        """Number of inputs."""
        return self.weights.shape[1]

    @property
    def n(self) -> int:
        """Number of outputs."""
        return self.weights.shape[0]

    def run(self, x, accelerator) -> LayerRun:
        """Run the layer on ``x`` [M, K]: the whole layer, or its sums, which the host finishes."""
        on_chip = self.on_chip(accelerator.config)
        result, record = accelerator.matmul(
            x, self.weights.T, record=True, **self.arguments(on_chip=on_chip)
        )
        if on_chip:
            return LayerRun(self.name, x, record, result)
        return LayerRun(self.name, x, record, self.finish(result), result)
