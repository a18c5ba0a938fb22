"""The network in BF16: weights rounded to bfloat16, sums in float32."""

from dataclasses import dataclass, fields

import numpy as np
from ml_dtypes import bfloat16

from weft.demo.arrays import require_arrays
from weft.demo.classifier import Classifier
from weft.demo.network import Network
from weft.demo.run import Runnable

__all__ = ["Bf16Layer", "Bf16Network"]

_RESULTS = (np.dtype(bfloat16), np.dtype(np.float32))


@dataclass(frozen=True, kw_only=True, eq=False)
class Bf16Layer(Runnable):
    """``y = relu(bias + x @ weights.T)``: sums in float32 that start from the bias, k ascending.

    Attributes
    ----------
    name : str
    weights : bfloat16 [N, K]
    bias : float32 [N]
    relu : bool
        Whether a negative result becomes +0.
    results : numpy dtype
        bfloat16 (the sums are rounded to nearest even) or float32 (the sums are not changed).

    Raises
    ------
    TypeError, ValueError
        If an attribute has a wrong type, shape or value.
    """

    name: str
    weights: np.ndarray
    bias: np.ndarray
    relu: bool
    results: np.dtype

    def __post_init__(self):
        require_arrays(self, {"weights": bfloat16, "bias": np.float32})
        if self.results not in _RESULTS:
            raise TypeError(f"results must be bfloat16 or float32, not {self.results}")

    def finish(self, sums) -> np.ndarray:
        """Output [M, N] from ``sums``, float32 [M, N], which start from 0; the bias is added last.

        The result can differ from sums that start from the bias, because this addition rounds once
        more, and at another place.
        """
        y = sums + self.bias
        if self.relu:
            y = np.where(y <= 0, np.float32(0), y)
        return y.astype(self.results)

    @staticmethod
    def on_chip(config) -> bool:
        """Whether the Config has ``c_words`` and the clamp."""
        return bool(config.c_words) and config.activation == "clamp"

    def arguments(self, *, on_chip) -> dict:
        """Further arguments of `weft.Accelerator.matmul`; ``on_chip``: for the whole layer."""
        if not on_chip:
            return {}
        arguments = {"bias": self.bias, "out_dtype": self.results}
        return arguments | {"low": 0} if self.relu else arguments


@dataclass(frozen=True, kw_only=True, eq=False)
class Bf16Network(Classifier):
    """A trained network in BF16: bfloat16 between the layers, float32 results of the last one."""

    @classmethod
    def of(cls, network: Network) -> "Bf16Network":
        """The trained network, with its float weights rounded to nearest even."""
        last = network.layers[-1]
        shared = {f.name: getattr(network, f.name) for f in fields(Classifier)}
        return cls(**shared | {"layers": tuple(
            Bf16Layer(
                name=layer.name, weights=layer.float_weights.astype(bfloat16),
                bias=layer.float_bias, relu=layer is not last,
                results=np.dtype(np.float32 if layer is last else bfloat16),
            )
            for layer in network.layers
        )})

    @classmethod
    def load(cls, path=None) -> "Bf16Network":
        """The BF16 network of a file. `Network.load` has the same arguments and errors."""
        return cls.of(Network.load(path))

    def encode(self, images) -> np.ndarray:
        """``images / image_max`` in bfloat16 [M, K], rounded to nearest even."""
        return self.scaled(images).astype(bfloat16)
