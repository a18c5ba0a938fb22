"""A network in BF16: the trained numbers rounded to bfloat16, each layer's sums in float32."""

from dataclasses import dataclass, fields

import numpy as np
from ml_dtypes import bfloat16

from weft.demo.arrays import require_arrays
from weft.demo.classifier import Classifier
from weft.demo.network import Network
from weft.demo.run import LayerRun

__all__ = ["Bf16Layer", "Bf16Network"]

_RESULTS = (np.dtype(bfloat16), np.dtype(np.float32))


@dataclass(frozen=True, kw_only=True, eq=False)
class Bf16Layer:
    """``y = relu(bias + x @ weights.T)``: sums in float32 from the bias on, k ascending.

    Attributes
    ----------
    name : str
    weights : bfloat16 [N, K]
    bias : float32 [N]
    relu : bool
        Whether a result under 0 becomes +0.
    results : numpy dtype
        bfloat16, to which sums are then rounded to nearest even; or float32, as they are.

    Raises
    ------
    TypeError, ValueError
        For a number out of its rule, by name.
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

    @property
    def k(self) -> int:
        """Inputs."""
        return self.weights.shape[1]

    @property
    def n(self) -> int:
        """Outputs."""
        return self.weights.shape[0]

    def finish(self, sums) -> np.ndarray:
        """Output [M, N] from sums that start from 0, float32 [M, N]: the bias is added last.

        That is one more rounding, in another place, than where sums start from the bias.
        """
        y = sums + self.bias
        if self.relu:
            y = np.where(y <= 0, np.float32(0), y)
        return y.astype(self.results)

    def run(self, x, accelerator) -> LayerRun:
        """The layer for ``x``, bfloat16 [M, K]: what came out, and what the accelerator did for it.

        All of it is done there where the Config has ``c_words`` and the clamp, else the sums alone.
        """
        config = accelerator.config
        whole = bool(config.c_words) and config.activation == "clamp"
        result, record = accelerator.matmul(
            x, self.weights.T, record=True, **self.arguments(whole=whole)
        )
        if whole:
            return LayerRun(self.name, x, record, result)
        return LayerRun(self.name, x, record, self.finish(result), result)

    def arguments(self, *, whole) -> dict:
        """What `weft.Accelerator.matmul` takes beside x and the weights, for ``whole`` layers."""
        if not whole:
            return {}
        given = {"bias": self.bias, "out_dtype": self.results}
        return given | {"low": 0} if self.relu else given


@dataclass(frozen=True, kw_only=True, eq=False)
class Bf16Network(Classifier):
    """A trained network in BF16: bfloat16 into and between its layers, float32 out of the last."""

    @classmethod
    def of(cls, network: Network) -> "Bf16Network":
        """A network as it was trained, its weights rounded to nearest even."""
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
        """That of a file, as `Network.load` has it; NetworkError where there is none."""
        return cls.of(Network.load(path))

    def encode(self, images) -> np.ndarray:
        """``images / image_max`` in bfloat16 [M, K], rounded to nearest even."""
        return self.scaled(images).astype(bfloat16)
