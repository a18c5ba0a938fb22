"""Reads language models in GGUF files, with the package `gguf`."""

import math
import mmap
import struct
from pathlib import Path

import numpy as np

from weft.golden.language import Weights
from weft.models.errors import ModelError
from weft.models.language.model import LanguageModel, limited_shape, refuse_unread
from weft.models.language.tokenizer import PieceTokenizer

__all__ = ["load"]

_TYPES = "F32", "F16", "Q8_0"
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # for a space in pieces of SentencePiece
_NAMES = {int: "an integer", float: "a number", str: "text", bool: "a bool", list: "a list"}
_TENSORS = {  # of each layer
    "attention_gain": "attn_norm", "wq": "attn_q", "wk": "attn_k", "wv": "attn_v",
    "wo": "attn_output", "ffn_gain": "ffn_norm", "w1": "ffn_gate", "w2": "ffn_down",
    "w3": "ffn_up",
}


def load(path: Path, name: str) -> LanguageModel:
    """Return the model of a file.

    The architecture must be ``llama``, without scaling of its rotation; tensors must be F32, F16 or
    Q8_0; the tokenizer must be ``llama``, which is SentencePiece's.

    Raises ModelError for another value, which it names, or a damaged file.
    """
    import gguf

    _check_fields(path, name)
    try:
        reader = gguf.GGUFReader(path)
    except OSError:
        raise
    except Exception as error:  # the package checks little: a damaged file ends in any error
        raise ModelError(f"{name}: the file is damaged: {str(error)[:100]}") from error
    return _Reader(reader, name).model()


_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of types
_STRING, _ARRAY = 8, 9


def _check_fields(path, name):
    """Raise ModelError unless all fields end inside the file.

    The package reads as many elements of an array as the file tells, also behind its end.
    """
    size = path.stat().st_size
    if size < 24:
        raise ModelError(f"{path.name}: a GGUF file must have 24 bytes or more, not {size}")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:4] != b"GGUF":
            raise ModelError(f"{path.name}: the first bytes must be GGUF, not {data[:4]!r}")
        version, _, fields = struct.unpack_from("<IQQ", data, 4)
        if version not in (2, 3):
            raise ModelError(f"{name}: the version must be 2 or 3, little-endian, not {version}")
        place = 24
        try:
            for _ in range(fields):
                place = _after_string(data, place)
                (kind,) = struct.unpack_from("<I", data, place)
                place = _after_value(data, place + 4, kind)
        except (struct.error, _Outside) as error:
            raise ModelError(f"{name}: the file is damaged: a field ends behind it") from error


class _Outside(Exception):
    """A value ends behind the file, or has an unknown type."""


def _after_string(data, place):
    (size,) = struct.unpack_from("<Q", data, place)
    if size > len(data) - place - 8:
        raise _Outside
    return place + 8 + size


def _after_value(data, place, kind):
    """The place after a value of this type."""
    if kind == _STRING:
        return _after_string(data, place)
    if kind == _ARRAY:
        element, count = struct.unpack_from("<IQ", data, place)
        place += 12
        if element == _STRING:
            for _ in range(count):
                place = _after_string(data, place)
            return place
        size = _SIZES.get(element, len(data)) * count
    else:
        size = _SIZES.get(kind, len(data))
    if size > len(data) - place:
        raise _Outside
    return place + size


class _Reader:
    """Fields and tensors of a file, with the checks that the package does not make."""

    def __init__(self, reader, name):
        self._name = name
        self._fields = reader.fields
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        self._unread = set(self._tensors)

    def _error(self, text):
        return ModelError(f"{self._name}: {text}")

    def _value(self, key, kind, default=None):
        """The value of a field, of this type."""
        field = self._fields.get(key)
        if field is None:
            if default is not None:
                return default
            raise self._error(f"the file must have the field {key}")
        try:
            value = field.contents()
        except Exception as error:  # as for a damaged file
            raise self._error(f"the field {key} is damaged") from error
        if kind is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
            raise self._error(f"{key} must be {_NAMES[kind]}, not {value!r:.60}")
        return value

    def _must(self, key, wanted, default):
        value = self._value(key, type(wanted), default)
        if value != wanted:
            raise self._error(f"{key} must be {wanted}, not {value!r:.60}")

    def model(self):
        """The whole model."""
        self._must("general.architecture", "llama", None)
        shape, positions = self._shape()
        self._must("llama.rope.scaling.type", "none", "none")
        self._must("llama.rope.dimension_count", shape.head_dim, shape.head_dim)
        self._must("llama.expert_count", 0, 0)
        self._must("tokenizer.ggml.add_bos_token", True, True)
        if "rope_freqs.weight" in self._tensors:
            raise self._error("the rotation must have no factors: rope_freqs.weight")
        tokenizer = self._tokenizer()
        n, dim, kv, hidden = shape.layers, shape.dim, shape.kv_dim, shape.hidden
        sizes = {
            "attention_gain": (dim,), "wq": (dim, dim), "wk": (kv, dim), "wv": (kv, dim),
            "wo": (dim, dim), "ffn_gain": (dim,), "w1": (hidden, dim), "w2": (dim, hidden),
            "w3": (hidden, dim),
        }
        embedding = self._tensor("token_embd.weight", (shape.vocab, dim))
        arrays = {
            key: np.stack([
                self._tensor(f"blk.{layer}.{part}.weight", sizes[key]) for layer in range(n)
            ])
            for key, part in _TENSORS.items()
        }
        classifier = embedding
        if "output.weight" in self._tensors:
            classifier = self._tensor("output.weight", (shape.vocab, dim))
        weights = Weights(
            shape=shape, embedding=embedding, classifier=classifier,
            final_gain=self._tensor("output_norm.weight", (dim,)), **arrays,
        )
        refuse_unread(self._name, self._unread)
        return LanguageModel(self._name, "GGUF", weights, tokenizer, positions)

    def _shape(self):
        """The shape, and the positions of the file."""
        heads = self._value("llama.attention.head_count", int)
        positions = self._value("llama.context_length", int)
        embedding = self._tensors.get("token_embd.weight")
        if embedding is None or len(embedding.shape) != 2:
            raise self._error("the file must have the matrix token_embd.weight")
        shape = limited_shape(
            self._name,
            dim=self._value("llama.embedding_length", int),
            layers=self._value("llama.block_count", int), heads=heads,
            kv_heads=self._value("llama.attention.head_count_kv", int, heads),
            hidden=self._value("llama.feed_forward_length", int),
            vocab=int(embedding.shape[1]), positions=positions,
            rope_theta=self._value("llama.rope.freq_base", float, 10000.0),
            epsilon=self._value("llama.attention.layer_norm_rms_epsilon", float),
        )
        return shape, positions

    def _tensor(self, key, size):
        """A tensor in float32."""
        import gguf

        tensor = self._tensors.get(key)
        if tensor is None:
            raise self._error(f"the file must have the tensor {key}")
        self._unread.discard(key)
        if tensor.tensor_type.name not in _TYPES:
            raise self._error(
                f"{key} must be of type {', '.join(_TYPES)}, not {tensor.tensor_type.name}"
            )
        found = tuple(int(n) for n in reversed(tensor.shape))
        if found != size:
            raise self._error(f"{key} must be {list(size)}, not {list(found)}")
        try:
            array = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        except Exception as error:  # as for a damaged file
            raise self._error(f"{key} is damaged") from error
        if array.size != math.prod(size):
            raise self._error(f"{key} must have {math.prod(size):,} values, not {array.size:,}")
        return array.reshape(size)

    def _tokenizer(self):
        self._must("tokenizer.ggml.model", "llama", None)
        pieces = self._value("tokenizer.ggml.tokens", list)
        scores = self._value("tokenizer.ggml.scores", list)
        eos = self._value("tokenizer.ggml.eos_token_id", int)
        try:
            encoded = tuple(piece.replace(_SPACE, " ").encode() for piece in pieces)
            values = np.array(scores, np.float32)
        except (AttributeError, UnicodeEncodeError, TypeError, ValueError) as error:
            raise self._error("the tokens must be text, and their scores numbers") from error
        return PieceTokenizer(
            encoded, values, self._value("tokenizer.ggml.bos_token_id", int), (eos,),
            prefix_space=self._value("tokenizer.ggml.add_space_prefix", bool, True),
        )
