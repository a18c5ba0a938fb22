"""Small language models with random weights."""

import numpy as np

from weft.golden.language import Shape, Weights

__all__ = ["random_weights"]


def random_weights(shape: Shape, seed: int, *, tied: bool = True) -> Weights:
    """Weights whose maps have values of the sizes of a trained model."""
    rng = np.random.default_rng(seed)

    def normal(*size):
        return (rng.standard_normal(size) / np.sqrt(size[-1])).astype(np.float32)

    def gains(*size):
        return rng.uniform(0.5, 1.5, size).astype(np.float32)

    n, dim, kv, hidden = shape.layers, shape.dim, shape.kv_dim, shape.hidden
    embedding = normal(shape.vocab, dim) * np.float32(4)
    return Weights(
        shape=shape, embedding=embedding, attention_gain=gains(n, dim), wq=normal(n, dim, dim),
        wk=normal(n, kv, dim), wv=normal(n, kv, dim), wo=normal(n, dim, dim),
        ffn_gain=gains(n, dim), w1=normal(n, hidden, dim), w2=normal(n, dim, hidden),
        w3=normal(n, hidden, dim), final_gain=gains(dim),
        classifier=embedding if tied else normal(shape.vocab, dim),
    )
