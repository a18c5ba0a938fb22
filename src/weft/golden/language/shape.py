"""The dimensions of a language model, llama or microGPT, and its weights in float32."""

import dataclasses
import math

import numpy as np

__all__ = ["ARCHITECTURES", "LLAMA", "MICROGPT", "Shape", "Weights"]

ARCHITECTURES = LLAMA, MICROGPT = "llama", "microgpt"
_LARGEST_THETA = 1e30  # the angles are float32


@dataclasses.dataclass(frozen=True)
class Shape:
    """The dimensions and constants of a decoder of one of two architectures.

    ============  ==============================================================================
    architecture  what it is
    ============  ==============================================================================
    llama         RMSNorm with gains, RoPE, SwiGLU, a norm before the classifier
    microgpt      RMSNorm without gains, also after the embedding and not before the classifier;
                  a learned embedding of each position; ReLU
    ============  ==============================================================================

    Attributes
    ----------
    dim : int
        Channels of the residual.
    layers : int
    heads : int
        Heads of the queries. Each has ``dim / heads`` channels.
    kv_heads : int
        Heads of keys and values. Head ``h`` of the queries reads head ``h // group`` of them.
    hidden : int
        Channels between ``w1``, ``w3`` and ``w2``.
    vocab : int
        Tokens.
    positions : int
        Tokens of the longest text.
    rope_theta : float
        Channels ``2 i`` and ``2 i + 1`` of a head rotate by ``position * rope_theta ** (-2 i /
        head_dim)``. In 1..1e30.
    epsilon : float
        Added to the mean square of a norm.
    architecture : str
        One of `ARCHITECTURES`.

    Raises
    ------
    ValueError
        For a number outside its range, heads that do not divide the channels, heads with an odd
        number of channels, or an unknown architecture.
    """

    dim: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    vocab: int
    positions: int
    rope_theta: float = 10000.0
    epsilon: float = 1e-5
    architecture: str = LLAMA

    def __post_init__(self):
        if self.architecture not in ARCHITECTURES:
            raise ValueError(
                f"architecture must be {' or '.join(ARCHITECTURES)}, not {self.architecture}"
            )
        for field in ("dim", "layers", "heads", "kv_heads", "hidden", "vocab", "positions"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field} must be 1 or more, not {getattr(self, field)}")
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise ValueError(f"epsilon must be a number above 0, not {self.epsilon}")
        if not 1 <= self.rope_theta <= _LARGEST_THETA:
            raise ValueError(
                f"rope_theta must be in 1..{_LARGEST_THETA:g}, not {self.rope_theta}"
            )
        for name, whole, part in (
            ("dim", self.dim, 2 * self.heads), ("heads", self.heads, self.kv_heads),
        ):
            if whole % part:
                raise ValueError(f"{name} must be a multiple of {part}, not {whole}")

    @property
    def is_llama(self) -> bool:
        """Whether the architecture is llama."""
        return self.architecture == LLAMA

    @property
    def head_dim(self) -> int:
        """Channels of a head."""
        return self.dim // self.heads

    @property
    def kv_dim(self) -> int:
        """Channels of all keys, or of all values, of a position."""
        return self.head_dim * self.kv_heads

    @property
    def group(self) -> int:
        """Heads of the queries that share a head of keys and values."""
        return self.heads // self.kv_heads

    @property
    def parameters(self) -> int:
        """Weights of a model whose classifier is the embedding."""
        attention = 2 * self.dim * (self.dim + self.kv_dim)
        if not self.is_llama:
            layer = attention + 2 * self.dim * self.hidden
            return (self.vocab + self.positions) * self.dim + self.layers * layer
        layer = attention + 2 * self.dim + 3 * self.dim * self.hidden
        return self.vocab * self.dim + self.layers * layer + self.dim

    def angles(self) -> tuple[np.ndarray, np.ndarray]:
        """Cosine and sine of each position and pair, float32 [positions, head_dim / 2]."""
        pair = np.arange(0, self.head_dim, 2, dtype=np.float32)
        theta = np.float32(self.rope_theta)
        frequency = np.float32(1) / np.power(theta, pair / np.float32(self.head_dim))
        angle = np.arange(self.positions, dtype=np.float32)[:, None] * frequency
        return np.cos(angle), np.sin(angle)


@dataclasses.dataclass(frozen=True)
class Weights:
    """The weights of a model, arrays of float32.

    Attributes
    ----------
    shape : Shape
    embedding : [vocab, dim]
    attention_gain, ffn_gain : [layers, dim]
        Gains of the norms before attention, and before ``w1`` and ``w3``. Those of a microGPT are
        1.
    wq, wo : [layers, dim, dim]
    wk, wv : [layers, kv_dim, dim]
    w1, w3 : [layers, hidden, dim]
        A microGPT has no ``w3``.
    w2 : [layers, dim, hidden]
    final_gain : [dim]
        None of a microGPT.
    classifier : [vocab, dim]
        The embedding itself, if the model has no other.
    position_embedding : [positions, dim]
        Of a microGPT; otherwise None.
    """

    shape: Shape
    embedding: np.ndarray
    attention_gain: np.ndarray
    wq: np.ndarray
    wk: np.ndarray
    wv: np.ndarray
    wo: np.ndarray
    ffn_gain: np.ndarray
    w1: np.ndarray
    w2: np.ndarray
    w3: np.ndarray | None
    final_gain: np.ndarray | None
    classifier: np.ndarray
    position_embedding: np.ndarray | None = None
