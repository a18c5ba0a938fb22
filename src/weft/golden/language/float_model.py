"""A language model in float32, as llama2.c computes it; or a microGPT."""

import numpy as np

from weft.golden.language.shape import Weights

__all__ = ["FloatModel"]


class FloatModel:
    """Computes logits of a batch of texts, position after position, with a cache of K and V.

    The sums of products have the order of NumPy, which is not that of llama2.c: logits differ by
    some 1e-5. Source of microGPT: A. Karpathy, microgpt.py, 2026.

    Parameters
    ----------
    weights : Weights
    see : callable, optional
        Called with the name of a value, its layer (0 for those of the whole model) and the array.

    Attributes
    ----------
    position : int
        Of the next token.
    """

    def __init__(self, weights: Weights, see=None):
        self.weights = weights
        self._see = see or (lambda name, layer, value: None)
        if weights.shape.is_llama:
            self._cos, self._sin = weights.shape.angles()
        self.start(1)

    def start(self, batch: int) -> None:
        """Forget all positions; the next texts are ``batch``."""
        shape = self.weights.shape
        size = (shape.layers, batch, shape.positions, shape.kv_heads, shape.head_dim)
        self._k, self._v = np.zeros(size, np.float32), np.zeros(size, np.float32)
        self.position = 0

    def step(self, tokens) -> np.ndarray:
        """Logits, float32 [batch, n, vocab], of the next ``n`` tokens: int [batch, n]."""
        w, see = self.weights, self._see
        x = w.embedding[tokens]
        if w.position_embedding is not None:
            x = x + w.position_embedding[self.position : self.position + x.shape[1]]
            see("x", 0, x)
            x = self._norm(x)
        see("x", 0, x)
        for layer in range(w.shape.layers):
            x = x + self._attention(layer, x) @ w.wo[layer].T
            see("x", 0, x)
            normed = self._norm(x)
            see("ffn_norm", layer, normed)
            normed = normed * w.ffn_gain[layer]
            x = x + self._hidden(layer, normed) @ w.w2[layer].T
            see("x", 0, x)
        if w.final_gain is not None:
            x = self._norm(x)
            see("final_norm", 0, x)
            x = x * w.final_gain
            see("y", 0, x)
        logits = x @ w.classifier.T
        see("logits", 0, logits)
        self.position += x.shape[1]
        return logits

    def _hidden(self, layer, normed):
        """What ``w2`` multiplies."""
        h1 = normed @ self.weights.w1[layer].T
        if self.weights.w3 is None:
            h = np.maximum(h1, 0)
        else:
            h3 = normed @ self.weights.w3[layer].T
            h = h1 * (np.float32(1) / (np.float32(1) + np.exp(-h1))) * h3
            self._see("h1", layer, h1)
            self._see("h3", layer, h3)
        self._see("h", layer, h)
        return h

    def _norm(self, x):
        mean = (x * x).mean(-1, keepdims=True, dtype=np.float32)
        return x * (np.float32(1) / np.sqrt(mean + np.float32(self.weights.shape.epsilon)))

    def _attention(self, layer, x):
        w, shape, see = self.weights, self.weights.shape, self._see
        batch, n, _ = x.shape
        start, end = self.position, self.position + n
        normed = self._norm(x)
        see("attention_norm", layer, normed)
        normed = normed * w.attention_gain[layer]
        q = (normed @ w.wq[layer].T).reshape(batch, n, shape.heads, shape.head_dim)
        k, v = (
            (normed @ part.T).reshape(batch, n, shape.kv_heads, shape.head_dim)
            for part in (w.wk[layer], w.wv[layer])
        )
        see("qk", layer, q)
        see("qk", layer, k)
        if shape.is_llama:
            q, k = self._rotate(q, start), self._rotate(k, start)
        for name, value in (("q", q), ("k", k), ("v", v)):
            see(name, layer, value)
        self._k[layer][:, start:end], self._v[layer][:, start:end] = k, v
        # [batch, head, position, channel]
        k, v = (
            part[layer][:, :end].repeat(shape.group, 2).swapaxes(1, 2)
            for part in (self._k, self._v)
        )
        scores = q.swapaxes(1, 2) @ k.swapaxes(2, 3) / np.float32(np.sqrt(shape.head_dim))
        later = np.arange(end) > np.arange(start, end)[:, None]
        scores = np.where(later, np.float32(-np.inf), scores)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        return (p @ v).swapaxes(1, 2).reshape(batch, n, shape.dim)

    def _rotate(self, x, start):
        stop = start + x.shape[1]
        cos, sin = (part[start:stop, None] for part in (self._cos, self._sin))
        a, b = x[..., 0::2], x[..., 1::2]
        y = np.empty_like(x)
        y[..., 0::2] = a * cos - b * sin
        y[..., 1::2] = a * sin + b * cos
        return y
