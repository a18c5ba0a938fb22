"""Reads language models and tokenizers of llama2.c."""

import math
import struct
from pathlib import Path

import numpy as np

from weft.golden.language import Weights
from weft.models.errors import ModelError
from weft.models.language.model import LanguageModel, limited_shape
from weft.models.language.tokenizer import PieceTokenizer

__all__ = ["load", "load_file", "read_tokenizer"]

_HEAD = struct.Struct("<7i")
_MAGIC = (0x616B3432).to_bytes(4, "little")  # of the versions 1 and 2
_BOS, _EOS = 1, 2
_LONGEST_PIECE = 4096


def load_file(path: Path, name: str, tokenizer) -> LanguageModel:
    """Return the model of a file, with the tokenizer of another file, or of its folder.

    Raises ModelError as `load` and `read_tokenizer` do, and if there is no tokenizer.
    """
    data = path.read_bytes()
    shape, _ = _head(data, path.name)
    vocab = shape.vocab
    place = _tokenizer_beside(path, vocab) if tokenizer is None else Path(tokenizer)
    return load(data, name, read_tokenizer(place, vocab))


def load(data: bytes, name: str, tokenizer: PieceTokenizer) -> LanguageModel:
    """Return the model of a file.

    The file is the version without a magic number: seven int32 (dim, hidden, layers, heads, heads
    of K and V, vocab, positions), then the weights in float32. A negative vocab says that the
    classifier is not the embedding. The rotation has theta 10,000, norms have epsilon 1e-5.

    Raises ModelError for another version, a size that does not fit the head, or a damaged file.
    """
    shape, tied = _head(data, name)
    positions = _HEAD.unpack_from(data)[-1]
    n, dim, kv, hidden = shape.layers, shape.dim, shape.kv_dim, shape.hidden
    sizes = {
        "embedding": (shape.vocab, dim), "attention_gain": (n, dim), "wq": (n, dim, dim),
        "wk": (n, kv, dim), "wv": (n, kv, dim), "wo": (n, dim, dim), "ffn_gain": (n, dim),
        "w1": (n, hidden, dim), "w2": (n, dim, hidden), "w3": (n, hidden, dim),
        "final_gain": (dim,), "angles": (positions, shape.head_dim),
    }
    if not tied:
        sizes["classifier"] = (shape.vocab, dim)
    wanted = _HEAD.size + 4 * sum(math.prod(size) for size in sizes.values())
    if len(data) != wanted:
        raise ModelError(
            f"{name} must have {wanted:,} bytes, as its head says, not {len(data):,}: the file is"
            " damaged"
        )
    arrays, start = {}, _HEAD.size
    for key, size in sizes.items():
        arrays[key] = np.frombuffer(data, "<f4", math.prod(size), start).reshape(size)
        start += 4 * math.prod(size)
    del arrays["angles"]  # computed from theta
    arrays.setdefault("classifier", arrays["embedding"])
    return LanguageModel(name, "llama2.c", Weights(shape=shape, **arrays), tokenizer, positions)


def _head(data, name):
    """The shape of a file, and whether its classifier is the embedding."""
    if data[:4] == _MAGIC:
        version = int.from_bytes(data[4:8], "little")
        raise ModelError(
            f"{name}: version must be 0, float32 without a magic number, not {version}:"
            " llama2.c's export.py writes it with --version 0"
        )
    if len(data) < _HEAD.size:
        raise ModelError(f"{name} must have a head of {_HEAD.size} bytes, not {len(data)} bytes")
    dim, hidden, layers, heads, kv_heads, vocab, positions = _HEAD.unpack_from(data)
    shape = limited_shape(
        name, dim=dim, hidden=hidden, layers=layers, heads=heads, kv_heads=kv_heads,
        vocab=abs(vocab), positions=positions,
    )
    return shape, vocab > 0


def read_tokenizer(path: Path, vocab: int) -> PieceTokenizer:
    """Return the tokenizer of a file: the longest piece, then score, length and bytes of each.

    Raises ModelError if the file has other pieces than ``vocab``, or is damaged.
    """
    data, start = path.read_bytes(), 4
    pieces, scores = [], []
    while start + 8 <= len(data) and len(pieces) < vocab:
        score, size = struct.unpack_from("<fi", data, start)
        if not 0 <= size <= min(_LONGEST_PIECE, len(data) - start - 8):
            break
        pieces.append(data[start + 8:start + 8 + size])
        scores.append(score)
        start += 8 + size
    if len(pieces) != vocab or start != len(data):
        raise ModelError(
            f"{path.name} must have {vocab:,} pieces in {len(data):,} bytes, not {len(pieces):,} in"
            f" {start:,}: it is damaged, or of another model"
        )
    return PieceTokenizer(tuple(pieces), np.array(scores, np.float32), _BOS, (_BOS, _EOS))


def _tokenizer_beside(path: Path, vocab: int) -> Path:
    """Return the tokenizer beside a model: ``tok512.bin`` for 512 tokens, or ``tokenizer.bin``."""
    names = (f"tok{vocab}.bin", "tokenizer.bin")
    for name in names:
        if path.with_name(name).exists():
            return path.with_name(name)
    raise ModelError(
        f"{path.name} needs its tokenizer: {' or '.join(names)} in its folder, or name the file"
        " with --tokenizer"
    )
