"""A language model in exact integers: int8 weights and cache, int16 maps, int32 sums (W8A16)."""

import dataclasses

import numpy as np

from weft.golden.int4 import scales_of
from weft.golden.language.operations import (
    Table,
    exponential,
    look_up,
    reciprocal,
    rms_norm,
    rotate,
    saturate,
    scale,
)
from weft.golden.language.shape import Shape
from weft.golden.matmul import matmul

__all__ = [
    "SCORE_BITS", "VALUE_BITS", "Channels", "IntegerLayer", "IntegerModel", "IntegerWeights",
    "Rows", "embedded",
]

SCORE_BITS = 8  # of scores, int16: -128 to 128; the exponential takes 4 bits more
VALUE_BITS = 8  # of the mean of V in units of its channel's scale: int16


@dataclasses.dataclass(frozen=True)
class Channels:
    """A multiplier for each channel: ``scale(v, multipliers, shift)``.

    Attributes
    ----------
    multipliers : int16 [channels]
    shift : int
        1 to 47, for all channels.
    """

    multipliers: np.ndarray
    shift: int


@dataclasses.dataclass(frozen=True)
class Rows:
    """The weights of a product: ``scale(weights @ map, multipliers, shift)``.

    Attributes
    ----------
    weights : int8 [outputs, inputs]
        The sum of the magnitudes of a row is at most 65,535, so that each sum of a product with an
        int16 map fits int32. Weights of int4 are here as `weft.golden.int4.unpack` gives
        them.
    multipliers : int16 [outputs]
    shift : int
        1 to 47, for all rows.
    """

    weights: np.ndarray
    multipliers: np.ndarray
    shift: int


@dataclasses.dataclass(frozen=True)
class IntegerLayer:
    """The integers of a layer. Gains of norms are in the weights.

    Attributes
    ----------
    attention_norm, ffn_norm : int
        The shift of `rms_norm`.
    q, k : Rows
        Of queries and keys before their rotation; both results have the same bits. Of a microGPT,
        which rotates nothing: queries for the scores, and int8 keys for the cache.
    v : Rows
        Of values: the result is int8, in units of a scale for each channel.
    k_cache : Channels
        From rotated keys to int8, in units of a scale for each channel.
    q_scores : Channels
        From rotated queries to int16, with the scale of the key's channel and ``1 /
        sqrt(head_dim)``. A microGPT has neither ``k_cache`` nor ``q_scores``.
    score_shift : int
        From sums of scores to ``SCORE_BITS``: 1 to 47.
    o, w1, w2, w3 : Rows
        A microGPT has no ``w3``, ``silu`` and ``gate_shift``.
    silu : Table
        Of the bits of ``w1``'s result.
    gate_shift : int
        From ``silu(h1) * h3`` to the bits of ``w2``'s operand: 1 to 47.
    """

    attention_norm: int
    q: Rows
    k: Rows
    v: Rows
    k_cache: Channels | None
    q_scores: Channels | None
    score_shift: int
    o: Rows
    ffn_norm: int
    w1: Rows
    w3: Rows | None
    silu: Table | None
    gate_shift: int | None
    w2: Rows


@dataclasses.dataclass(frozen=True)
class IntegerWeights:
    """The integers of a model.

    Attributes
    ----------
    shape : Shape
    embedding : Rows
        The map of a token is its row of weights, scaled by the row's multiplier.
    epsilon : int
        1 or more, in the units of the sum of squares of the residual.
    rsqrt : Table
        Of all norms.
    cos, sin : int16 [positions, head_dim / 2]
        With 15 bits. A microGPT has none.
    layers : tuple of IntegerLayer
    final_norm : int
        The shift of `rms_norm`.
    final_gain : Channels
        A microGPT has neither.
    classifier : Rows
        Its weights are those of the embedding, if the model has no others.
    logit_bits : int
        Bits after the binary point of the logits, which are int16.
    position_embedding : Rows
        Of a microGPT: as ``embedding``, with a row for each position.
    embedding_norm : int
        Of a microGPT: the shift of `rms_norm` after the embedding.
    """

    shape: Shape
    embedding: Rows
    epsilon: int
    rsqrt: Table
    cos: np.ndarray | None
    sin: np.ndarray | None
    layers: tuple[IntegerLayer, ...]
    final_norm: int | None
    final_gain: Channels | None
    classifier: Rows
    logit_bits: int
    position_embedding: Rows | None = None
    embedding_norm: int | None = None

    @property
    def tied(self) -> bool:
        """Whether the weights of the classifier are those of the embedding."""
        return np.array_equal(self.classifier.weights, self.embedding.weights)

    @property
    def weight_type(self) -> str:
        """``int4`` if all weights are of int4, else ``int8``."""
        rows = [self.embedding, self.classifier]
        for layer in self.layers:
            values = vars(layer).values()
            rows += [each for each in values if isinstance(each, Rows)]
        is_int4 = all(scales_of(each.weights) is not None for each in rows)
        return "int4" if is_int4 else "int8"

    @property
    def parameters(self) -> int:
        """Weights of the model; those of a classifier that is the embedding count once."""
        return self.shape.parameters + (not self.tied) * self.shape.vocab * self.shape.dim


def embedded(rows: Rows, numbers) -> np.ndarray:
    """The maps of some rows of an embedding, int16 [..., dim]."""
    return scale(rows.weights[numbers], rows.multipliers[numbers][..., None], rows.shift)


def _product(a, rows, bits=16):
    """``scale(rows.weights @ a)`` along the last axis of ``a``."""
    sums = matmul(a.astype(np.int16), rows.weights.T)
    return scale(sums, rows.multipliers, rows.shift, bits)


class IntegerModel:
    """Computes logits of a batch of texts, position after position, with a cache of K and V.

    The results do not depend on how the tokens are divided into calls of `step`.

    Parameters
    ----------
    weights : IntegerWeights

    Attributes
    ----------
    position : int
        Of the next token.
    """

    def __init__(self, weights: IntegerWeights):
        self.weights = weights
        self.start(1)

    def start(self, batch: int) -> None:
        """Forget all positions; the next texts are ``batch``."""
        shape = self.weights.shape
        size = (shape.layers, batch, shape.positions, shape.kv_heads, shape.head_dim)
        self._k, self._v = np.zeros(size, np.int8), np.zeros(size, np.int8)
        self.position = 0

    def step(self, tokens) -> np.ndarray:
        """Logits, int16 [batch, n, vocab], of the next ``n`` tokens: int [batch, n].

        For each layer::

            a = rms_norm(x)
            q, k = rotate(q @ a), rotate(k @ a)
            K, V = k_cache * k, v @ a            int8
            x = x + o @ attention(q_scores * q, K, V)
            a = rms_norm(x)
            x = x + w2 @ (silu(w1 @ a) * (w3 @ a))

        ``x`` saturates to int16 after each addition; its squares are summed for the next norm. The
        logits are ``classifier @ (final_gain * rms_norm(x))``.

        A microGPT begins with ``x = rms_norm(saturate(embedding + position_embedding))``. It has no
        ``rotate``: ``q @ a`` and ``k @ a`` have the scales of scores and cache. ``h = max(w1 @ a,
        0)``, and the logits are ``classifier @ x``.
        """
        w = self.weights
        x = embedded(w.embedding, tokens)
        if w.position_embedding is not None:
            here = np.arange(self.position, self.position + x.shape[1])
            x = self._norm(saturate(x + embedded(w.position_embedding, here)), w.embedding_norm)
        for layer, parts in enumerate(w.layers):
            x = saturate(x + _product(self._attention(layer, parts, x), parts.o))
            a = self._norm(x, parts.ffn_norm)
            h = _product(a, parts.w1)
            if parts.w3 is None:
                h = np.maximum(h, 0)
            else:
                gate = look_up(parts.silu, h + 32768)
                h = scale(gate * _product(a, parts.w3), 1, parts.gate_shift)
            x = saturate(x + _product(h, parts.w2))
        if w.final_gain is not None:
            a = self._norm(x, w.final_norm)
            x = scale(a, w.final_gain.multipliers, w.final_gain.shift)
        self.position += x.shape[1]
        return _product(x, w.classifier).astype(np.int16)

    def _norm(self, x, shift):
        squares = (x * x).sum(-1, keepdims=True) + self.weights.epsilon
        return rms_norm(x, squares, self.weights.rsqrt, shift)

    def _attention(self, layer, parts, x):
        """The mean of V by ``exp(score)``, int16 [batch, n, dim], in units of V's scales.

        ``p = exponential(largest score - score)`` is not normalised: ``scale(sum of p * V, m, e -
        8)`` with ``(m, e) = reciprocal(sum of p)`` divides by the sum. Sums of ``p * V`` fit int32
        for up to 512 positions.
        """
        shape = self.weights.shape
        batch, n, _ = x.shape
        start, end = self.position, self.position + n
        a = self._norm(x, parts.attention_norm)
        if shape.is_llama:
            q, k = self._rotated(parts, a)
        else:
            q, k = _product(a, parts.q), _product(a, parts.k, bits=8)
        v = _product(a, parts.v, bits=8)
        for cache, new in ((self._k, k), (self._v, v)):
            cache[layer][:, start:end] = new.reshape(batch, n, shape.kv_heads, shape.head_dim)
        q = q.reshape(batch, n, shape.heads, shape.head_dim).swapaxes(1, 2).astype(np.int16)
        # [batch, head, position, channel]
        k, v = (
            part[layer][:, :end].repeat(shape.group, 2).swapaxes(1, 2)
            for part in (self._k, self._v)
        )
        scores = scale(matmul(q, k.swapaxes(2, 3)), 1, parts.score_shift)
        later = np.arange(end) > np.arange(start, end)[:, None]
        top = np.where(later, -32768, scores).max(-1, keepdims=True)
        p = np.where(later, 0, exponential(np.maximum(top - scores, 0), 12 - SCORE_BITS))
        m, e = reciprocal(p.sum(-1, keepdims=True))
        mean = scale(matmul(p.astype(np.int16), v), m, e - VALUE_BITS)
        return mean.swapaxes(1, 2).reshape(batch, n, shape.dim)

    def _rotated(self, parts, a):
        """Queries for the scores, int16 [batch, n, dim], and keys, int8 [batch, n, kv_dim]."""
        shape, (batch, n, _) = self.weights.shape, a.shape
        here = slice(self.position, self.position + n)
        cos, sin = (part[here, None] for part in (self.weights.cos, self.weights.sin))
        q = _product(a, parts.q).reshape(batch, n, shape.heads, shape.head_dim)
        k = _product(a, parts.k).reshape(batch, n, shape.kv_heads, shape.head_dim)
        q, k = (rotate(part, cos, sin).reshape(batch, n, -1) for part in (q, k))
        q = scale(q, parts.q_scores.multipliers, parts.q_scores.shift)
        return q, scale(k, parts.k_cache.multipliers, parts.k_cache.shift, bits=8)
