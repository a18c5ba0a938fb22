"""Writes language models and tokenizers as files of llama2.c."""

import struct

import numpy as np

from weft.golden.language import Weights
from weft.models.language.tokenizer import PieceTokenizer

__all__ = ["model_file", "tokenizer_file"]


def model_file(weights: Weights) -> bytes:
    """The bytes of a model: seven int32 and the weights in float32, without a magic number."""
    shape = weights.shape
    tied = weights.classifier is weights.embedding
    head = struct.pack(
        "<7i", shape.dim, shape.hidden, shape.layers, shape.heads, shape.kv_heads,
        shape.vocab if tied else -shape.vocab, shape.positions,
    )
    cos, sin = shape.angles()
    parts = [
        weights.embedding, weights.attention_gain, weights.wq, weights.wk, weights.wv, weights.wo,
        weights.ffn_gain, weights.w1, weights.w2, weights.w3, weights.final_gain, cos, sin,
    ]
    if not tied:
        parts.append(weights.classifier)
    return head + b"".join(np.ascontiguousarray(part, "<f4").tobytes() for part in parts)


def tokenizer_file(tokenizer: PieceTokenizer) -> bytes:
    """The bytes of a tokenizer: the longest piece, then score, length and bytes of each piece."""
    parts = [struct.pack("<i", max(map(len, tokenizer.pieces)))]
    for piece, score in zip(tokenizer.pieces, tokenizer.scores, strict=True):
        parts.append(struct.pack("<fi", float(score), len(piece)) + piece)
    return b"".join(parts)
