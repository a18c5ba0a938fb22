"""Quantized language models of random weights, and the texts of their golden model."""

import functools
from dataclasses import replace

import numpy as np
from language_models import MICROGPT, SMALL, pieces, random_microgpt, random_weights

from weft.golden.language import IntegerModel, Shape
from weft.golden.language.sampling import GREEDY, sample
from weft.language_core.config import LanguageCoreConfig
from weft.models.language.model import LanguageModel
from weft.models.language.quantization import observe, quantize
from weft.models.language_core.program import compile_model

__all__ = [
    "CORE", "INT4_CORE", "MICRO", "SDRAM_CORE", "SHAPE", "blank", "cache_of", "golden_text",
    "program_of", "quantized", "quantized_microgpt", "small_program",
]

CORE = LanguageCoreConfig(words=768, groups=512, side_groups=64)  # two banks of words
SDRAM_CORE = replace(CORE, side_groups=128, program_words=1 << 18)
INT4_CORE = replace(SDRAM_CORE, int4=True)
MICRO = LanguageCoreConfig(words=1024, groups=128, side_groups=256, microprogram=True)
SHAPE = Shape(dim=32, layers=2, heads=4, kv_heads=2, hidden=40, vocab=48, positions=48)


@functools.cache
def quantized(shape=SHAPE, seed=1, tied=True, weight_type="int8"):
    """The integers of a model of random weights."""
    weights = random_weights(shape, seed, tied=tied)
    texts = np.random.default_rng(seed).integers(0, shape.vocab, (4, min(32, shape.positions)))
    return quantize(weights, observe(weights, texts), weight_type)


def blank(shape):
    """The integers of a model whose weights and multipliers are 0: for sizes and cycles."""
    some, kv = quantized(), shape.kv_dim
    sizes = {
        "q": (shape.dim, shape.dim), "k": (kv, shape.dim), "v": (kv, shape.dim),
        "o": (shape.dim, shape.dim), "w1": (shape.hidden, shape.dim),
        "w3": (shape.hidden, shape.dim), "w2": (shape.dim, shape.hidden),
    }

    def rows(outputs, inputs):
        weights, multipliers = np.zeros((outputs, inputs), np.int8), np.zeros(outputs, np.int16)
        return replace(some.embedding, weights=weights, multipliers=multipliers)

    def channels(count):
        return replace(some.final_gain, multipliers=np.zeros(count, np.int16))

    layer = replace(
        some.layers[0], k_cache=channels(kv), q_scores=channels(shape.dim),
        **{name: rows(*size) for name, size in sizes.items()},
    )
    angles = np.zeros((shape.positions, shape.head_dim // 2), np.int16)
    embedding = rows(shape.vocab, shape.dim)
    return replace(
        some, shape=shape, embedding=embedding, classifier=embedding, cos=angles, sin=angles,
        layers=(layer,) * shape.layers, final_gain=channels(shape.dim),
    )


@functools.cache
def quantized_microgpt(shape=MICROGPT, seed=1):
    """The same of a microGPT."""
    weights = random_microgpt(shape, seed)
    texts = np.random.default_rng(seed).integers(0, shape.vocab, (40, shape.positions))
    return quantize(weights, observe(weights, texts))


@functools.cache
def small_program():
    """The program of a small model with a tokenizer; a core can execute it."""
    weights = random_weights(replace(SMALL, vocab=304), 5)
    return LanguageModel("small", "llama2.c", weights, pieces(304), 48).compile()


def program_of(weights, positions=None, config=CORE):
    """The program of a model, with all its positions if none are given."""
    return compile_model(weights, config, positions or weights.shape.positions)


def cache_of(program, shape, read):
    """Keys and values of all layers, int8 [2, layers, positions, channels].

    ``read(first, count)`` returns words of the main memory, or of the program memory.
    """
    positions, channels = program.positions, shape.kv_dim
    found = []
    for keys, values in program.caches:
        words = [
            np.frombuffer(read(first, positions * channels // 128), np.int8)
            for first in (keys, values)
        ]
        # [channel // 16, position // 8, position % 8, channel % 16]
        key = words[0].reshape(channels // 16, positions, 16).swapaxes(0, 1)
        # [channel // 8, position // 16, channel % 8, position % 16]
        value = words[1].reshape(channels // 8, positions // 16, 8, 16).transpose(1, 3, 0, 2)
        found.append([part.reshape(positions, channels) for part in (key, value)])
    return np.array(found).swapaxes(0, 1)


def golden_text(weights, prompt, limit, model=None, how=GREEDY, state=1):
    """The tokens that a text adds to a prompt, up to the position ``limit``.

    ``model`` is the `IntegerModel` that computes them, if its cache is of interest. ``how`` and the
    random ``state`` choose the tokens.
    """
    model = model or IntegerModel(weights)
    logits, found = model.step(np.array([prompt]))[0, -1], []
    while True:
        token, state = sample(logits, how, state)
        found.append(token)
        if model.position == limit:
            return found
        logits = model.step(np.array([found[-1:]]))[0, -1]
