"""Reads a microGPT: the arrays of its state in an ``.npz`` file of NumPy."""

import re
import zipfile
from pathlib import Path

import numpy as np

from weft.golden.language import Weights
from weft.golden.language.shape import MICROGPT
from weft.models.errors import ModelError, require
from weft.models.language.model import LanguageModel, limited_shape
from weft.models.language.tokenizer import PieceTokenizer

__all__ = ["load", "write"]

_MODEL = {"wte": "embedding", "wpe": "position_embedding", "lm_head": "classifier"}
_LAYER = {
    "attn_wq": "wq", "attn_wk": "wk", "attn_wv": "wv", "attn_wo": "wo", "mlp_fc1": "w1",
    "mlp_fc2": "w2",
}
_LARGEST = 1 << 28  # bytes of an array: far more than a model of this kind has


def load(path: Path, name: str) -> LanguageModel:
    """Return the model of a file.

    Its arrays have the names of the state of A. Karpathy's microgpt.py: ``wte`` [vocab, dim],
    ``wpe`` [positions, dim], ``lm_head`` [vocab, dim], and for each layer ``layer0.attn_wq``,
    ``attn_wk``, ``attn_wv``, ``attn_wo`` [dim, dim], ``mlp_fc1`` [hidden, dim], ``mlp_fc2`` [dim,
    hidden]. Two more arrays are ``n_head``, a number, and ``chars``, a text: token n is its
    character n, and the last token starts and ends a text. Norms have epsilon 1e-5.

    Raises ModelError for a missing or another array, a wrong size, or a damaged file.
    """
    arrays = _arrays(path)
    for key in ("wte", "wpe", "layer0.mlp_fc1", "n_head", "chars"):
        require(key in arrays, f"{path.name} must have the array {key}: it is no microGPT")
    for key in ("wte", "wpe", "layer0.mlp_fc1"):
        require(arrays[key].ndim == 2, f"{path.name}: {key} must have 2 dimensions")
    chars = str(arrays["chars"])
    require(
        arrays["n_head"].ndim == 0 and arrays["n_head"].dtype.kind in "iu",
        f"{path.name}: n_head must be a number",
    )
    heads, layers = int(arrays["n_head"]), 1
    while f"layer{layers}.attn_wq" in arrays:
        layers += 1
    vocab, dim = arrays["wte"].shape
    positions = len(arrays["wpe"])
    shape = limited_shape(
        path.name, dim=dim, hidden=len(arrays["layer0.mlp_fc1"]), layers=layers, heads=heads,
        kv_heads=heads, vocab=vocab, positions=positions, architecture=MICROGPT,
    )
    require(
        len(chars) == vocab - 1 == len({*chars}),
        f"{path.name}: chars must have {vocab - 1} different characters, one for each token but"
        f" the last, not {len(chars)}",
    )
    sizes = {"wte": (vocab, dim), "wpe": (positions, dim), "lm_head": (vocab, dim)}
    for layer in range(layers):
        sizes |= {f"layer{layer}.{key}": (dim, dim) for key in _LAYER}
        sizes[f"layer{layer}.mlp_fc1"] = shape.hidden, dim
        sizes[f"layer{layer}.mlp_fc2"] = dim, shape.hidden
    others = sorted(arrays.keys() - sizes.keys() - {"n_head", "chars"})
    require(not others, f"{path.name} must have no array {', '.join(others[:3])}")
    for key, size in sizes.items():
        require(
            key in arrays and arrays[key].shape == size and arrays[key].dtype.kind == "f",
            f"{path.name}: {key} must be floating-point numbers {list(size)}",
        )
    found = {each: arrays[key].astype(np.float32) for key, each in _MODEL.items()}
    found["position_embedding"] = found["position_embedding"][: shape.positions]
    found |= {
        each: np.stack([arrays[f"layer{n}.{key}"] for n in range(layers)]).astype(np.float32)
        for key, each in _LAYER.items()
    }
    ones = np.ones((layers, dim), np.float32)
    weights = Weights(
        shape=shape, attention_gain=ones, ffn_gain=ones, w3=None, final_gain=None, **found
    )
    tokenizer = PieceTokenizer(
        (*(character.encode() for character in chars), b"\n"), np.zeros(vocab, np.float32),
        vocab - 1, (vocab - 1,), prefix_space=False,
    )
    return LanguageModel(name, "microGPT", weights, tokenizer, positions)


def write(path: Path, weights: Weights, chars: str) -> None:
    """Write a microGPT to a file, which `load` reads."""
    arrays = {key: getattr(weights, each) for key, each in _MODEL.items()}
    for layer in range(weights.shape.layers):
        arrays |= {
            f"layer{layer}.{key}": getattr(weights, each)[layer] for key, each in _LAYER.items()
        }
    np.savez(path, n_head=weights.shape.heads, chars=chars, **arrays)


def _arrays(path):
    """All arrays of a file by their names."""
    try:
        with zipfile.ZipFile(path) as archive:
            largest = max((entry.file_size for entry in archive.infolist()), default=0)
        require(
            largest <= _LARGEST,
            f"{path.name}: an array must have at most {_LARGEST:,} bytes, not {largest:,}",
        )
        with np.load(path, allow_pickle=False) as file:
            require(
                all(re.fullmatch(r"[a-z0-9_.]+", key) for key in file.files),
                f"{path.name} must have names of lower-case letters, digits, points and _",
            )
            return {key: file[key] for key in file.files}
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, KeyError) as error:
        raise ModelError(f"{path.name} must be a whole .npz file of NumPy: {error}") from error
