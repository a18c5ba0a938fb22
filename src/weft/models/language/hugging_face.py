"""Reads language models in folders of Hugging Face: config.json, safetensors and tokenizer.json."""

import json
from pathlib import Path

import numpy as np

from weft.golden.language import Shape, Weights
from weft.models.errors import ModelError
from weft.models.language.model import LanguageModel, limited_shape, refuse_unread
from weft.models.language.tokenizer import JsonTokenizer

__all__ = ["load"]

_MAX_JSON = 1 << 26  # bytes
_LAYER = "model.layers.{}."
_TENSORS = {
    "attention_gain": "input_layernorm", "wq": "self_attn.q_proj", "wk": "self_attn.k_proj",
    "wv": "self_attn.v_proj", "wo": "self_attn.o_proj", "ffn_gain": "post_attention_layernorm",
    "w1": "mlp.gate_proj", "w2": "mlp.down_proj", "w3": "mlp.up_proj",
}
# Values of config.json that change the arithmetic: what they must be, if they are given.
_FIXED = {
    "hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "rope_scaling": None,
    "quantization_config": None, "partial_rotary_factor": 1.0,
}
# Tensors that older versions of the package write, and compute again: the angles of the rotation.
_COMPUTED = "rotary_emb.inv_freq"


def load(folder: Path, name: str) -> LanguageModel:
    """Return the model of a folder.

    The model must be of type ``llama``, in F32, F16 or BF16, without bias and without scaling of
    its rotation. Its rows of Q and K are put into the order of neighbouring pairs: a file has the
    first halves of all pairs before the second ones.

    Raises ModelError for another value, which it names, or a damaged file.
    """
    config = _json(folder / "config.json")
    if config.get("model_type") != "llama":
        raise ModelError(f"{name}: model_type must be llama, not {config.get('model_type')!r:.60}")
    for key, wanted in _FIXED.items():
        if config.get(key, wanted) != wanted:
            raise ModelError(f"{name}: {key} must be {wanted!r}, not {config[key]!r:.60}")
    shape = _shape(config, name)
    tied = config.get("tie_word_embeddings", False)
    if not isinstance(tied, bool):
        raise ModelError(f"{name}: tie_word_embeddings must be true or false, not {tied!r:.60}")
    arrays = _Tensors(folder, name).weights(shape, tied)
    tokenizer = _tokenizer(folder, config, name)
    weights = Weights(shape=shape, **arrays)
    return LanguageModel(
        name, "Hugging Face", weights, tokenizer, config["max_position_embeddings"]
    )


def _json(path):
    """The object of a JSON file."""
    data = path.read_bytes()
    try:
        if len(data) > _MAX_JSON:
            raise ValueError(f"{len(data):,} bytes are too many")
        value = json.loads(data)
    except (RecursionError, ValueError) as error:
        raise ModelError(f"{path.name} must be JSON: {str(error)[:100]}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path.name} must be an object, not a {type(value).__name__}")
    return value


def _shape(config, name):
    def number(key, kind=int, default=None):
        value = config.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | kind):
            rule = "an integer" if kind is int else "a number"
            raise ModelError(f"{name}: {key} must be {rule}, not {value!r:.60}")
        return kind(value)

    heads = number("num_attention_heads")
    rope = config.get("rope_parameters") or {}
    if not isinstance(rope, dict) or rope.get("rope_type", "default") != "default":
        raise ModelError(f"{name}: rope_parameters must be of type default, not {rope!r:.60}")
    shape = limited_shape(
        name, dim=number("hidden_size"), layers=number("num_hidden_layers"), heads=heads,
        kv_heads=number("num_key_value_heads", default=heads),
        hidden=number("intermediate_size"), vocab=number("vocab_size"),
        positions=number("max_position_embeddings"),
        rope_theta=number("rope_theta", float, rope.get("rope_theta", 10000.0)),
        epsilon=number("rms_norm_eps", float),
    )
    head_dim = config.get("head_dim") or shape.head_dim
    if head_dim != shape.head_dim:
        raise ModelError(
            f"{name}: head_dim must be hidden_size / num_attention_heads, {shape.head_dim}, not"
            f" {head_dim!r:.60}"
        )
    return shape


def _tokenizer(folder, config, name):
    path = folder / "tokenizer.json"
    if path.stat().st_size > _MAX_JSON:
        raise ModelError(f"{name}: tokenizer.json must have at most {_MAX_JSON:,} bytes")
    bos, eos = config.get("bos_token_id"), config.get("eos_token_id")
    stops = eos if isinstance(eos, list) else [eos]
    for token in (bos, *stops):
        if isinstance(token, bool) or not isinstance(token, int):
            raise ModelError(
                f"{name}: bos_token_id and eos_token_id must be numbers, not {token!r:.60}"
            )
    return JsonTokenizer(path.read_bytes(), bos, tuple(stops))


class _Tensors:
    """The tensors of the safetensors files of a folder."""

    def __init__(self, folder, name):
        self._name = name
        index = folder / "model.safetensors.index.json"
        files = [folder / "model.safetensors"]
        if index.exists():
            listed = _json(index).get("weight_map")
            if not isinstance(listed, dict):
                raise ModelError(f"{name}: weight_map of {index.name} must be an object")
            names = sorted({str(file) for file in listed.values()})
            if any(Path(file).name != file for file in names):
                raise ModelError(f"{name}: files of {index.name} must be in its folder")
            files = [folder / file for file in names]
        self._files = {}
        for file in files:
            for key in self._open(file, lambda opened: list(opened.keys())):
                self._files[key] = file
        self._unread = {key for key in self._files if not key.endswith(_COMPUTED)}

    def _open(self, file, read):
        import safetensors

        if not file.exists():  # the package's error does not name the file
            raise FileNotFoundError(2, "No such file or directory", str(file))
        try:
            with safetensors.safe_open(file, framework="np") as opened:
                return read(opened)
        except (safetensors.SafetensorError, TypeError, ValueError, AttributeError) as error:
            raise ModelError(f"{self._name}: {file.name} is damaged: {str(error)[:100]}") from error

    def _tensor(self, key, size):
        if key not in self._files:
            raise ModelError(f"{self._name}: the files must have the tensor {key}")
        self._unread.discard(key)

        def read(opened):
            part = opened.get_slice(key)
            return part.get_dtype(), tuple(part.get_shape()), opened.get_tensor(key)

        dtype, found, array = self._open(self._files[key], read)
        if dtype not in ("F32", "F16", "BF16"):
            raise ModelError(f"{self._name}: {key} must be of type F32, F16 or BF16, not {dtype}")
        if found != size:
            raise ModelError(f"{self._name}: {key} must be {list(size)}, not {list(found)}")
        return array.astype(np.float32)

    def weights(self, shape: Shape, tied: bool):
        """The arrays of a model."""
        n, dim, kv, hidden = shape.layers, shape.dim, shape.kv_dim, shape.hidden
        sizes = {
            "attention_gain": (dim,), "wq": (dim, dim), "wk": (kv, dim), "wv": (kv, dim),
            "wo": (dim, dim), "ffn_gain": (dim,), "w1": (hidden, dim), "w2": (dim, hidden),
            "w3": (hidden, dim),
        }
        arrays = {
            key: np.stack([
                self._tensor(f"{_LAYER.format(layer)}{part}.weight", sizes[key])
                for layer in range(n)
            ])
            for key, part in _TENSORS.items()
        }
        for key, heads in (("wq", shape.heads), ("wk", shape.kv_heads)):
            arrays[key] = _neighbours(arrays[key], heads)
        arrays["embedding"] = self._tensor("model.embed_tokens.weight", (shape.vocab, dim))
        arrays["final_gain"] = self._tensor("model.norm.weight", (dim,))
        arrays["classifier"] = arrays["embedding"]
        if not tied:
            arrays["classifier"] = self._tensor("lm_head.weight", (shape.vocab, dim))
        self._unread -= {"lm_head.weight"}  # a copy, if it is tied
        refuse_unread(self._name, self._unread)
        return arrays


def _neighbours(rows, heads):
    """Rows of each head from halves to pairs: row ``i`` and row ``i + head_dim / 2`` meet."""
    layers, outputs, inputs = rows.shape
    halves = rows.reshape(layers, heads, 2, outputs // heads // 2, inputs)
    return halves.swapaxes(2, 3).reshape(rows.shape)
