"""Quantizes a language model: the ranges of its own texts in float32 give the scales of all maps.

Each sum of a product fits int32 by construction, whatever the maps are: the weights of a row have
a scale so that their magnitudes add up to at most 65,535, and a map is int16. `check_bounds` proves
the same of the integers of a file.
"""

import math

import numpy as np

from weft.golden.int4 import CODES, MAX_SCALE, nearest
from weft.golden.language import FloatModel, IntegerWeights, Shape, Weights
from weft.golden.language.integer_model import (
    SCORE_BITS,
    VALUE_BITS,
    Channels,
    IntegerLayer,
    Rows,
)
from weft.golden.language.operations import MAX_SHIFT, leading_one, rsqrt_table, silu_table
from weft.models.errors import ModelError, require

__all__ = [
    "INT4", "INT8", "MAX_POSITIONS", "WEIGHT_TYPES", "Ranges", "check_bounds", "check_limits",
    "logits_of", "observe", "quantize", "sampled_texts",
]

MAX_POSITIONS = 512  # sums of p * V: 512 * 32,767 * 128 is below 2**31
MAX_HEAD_DIM = 511  # sums of scores: 511 * 32,768 * 128 is below 2**31
MAX_VOCAB = 65536  # sums of exponentials: 65,536 * 32,767 is below 2**31
MAX_DIM = 65536  # sums of squares: 65,536 * 2**30, and the epsilon, have 48 bits
MAX_LAYERS = 1024
_ROW_SUM = 65535  # of magnitudes of a row: times 2**15 it is below 2**31
_MARGIN = 2.0  # of int16 maps over the largest value seen
_CACHE_MARGIN = 1.15  # of K and V; int8 has no bits to lose

WEIGHT_TYPES = INT8, INT4 = "int8", "int4"  # of `quantize`

TEXTS, TEXT_LENGTH = 16, 256  # that the model samples for its ranges; more if they are shorter


class Ranges:
    """The largest magnitudes of a model's values.

    An instance is the ``see`` of a `FloatModel`. ``ranges[name, layer]`` is an array: for ``q``,
    ``k`` and ``v`` [heads, channels], for all others one number.
    """

    def __init__(self):
        self._largest = {}

    def __call__(self, name, layer, value):
        axes = (0, 1) if name in ("q", "k", "v") else None
        largest = np.abs(value).max(axes)
        self._largest[name, layer] = np.maximum(self._largest.get((name, layer), 0), largest)

    def __getitem__(self, key):
        return self._largest[key].astype(np.float64)


def sampled_texts(
    weights: Weights, first: int, seed: int, texts: int | None = None, length: int = TEXT_LENGTH,
    greedy_from: int | None = None,
) -> np.ndarray:
    """Texts that the float model writes at temperature 1, int [texts, length].

    Parameters
    ----------
    weights : Weights
    first : int
        The token that starts each text.
    seed : int
    texts, length : int
        The length is limited to the positions of the model. By default the texts have 4,096 tokens
        in all: 16 texts of 256.
    greedy_from : int, optional
        From this position on, the token with the largest logit is taken.
    """
    length = min(length, weights.shape.positions)
    texts = texts or TEXTS * TEXT_LENGTH // length
    rng, model = np.random.default_rng(seed), FloatModel(weights)
    model.start(texts)
    tokens = np.full((texts, length), first)
    for position in range(length - 1):
        with np.errstate(all="ignore"):  # of damaged weights, which the next line refuses
            logits = model.step(tokens[:, position:position + 1])[:, 0].astype(np.float64)
        require(bool(np.isfinite(logits).all()), "logits must be numbers: the weights are damaged")
        if greedy_from is not None and position + 1 >= greedy_from:
            tokens[:, position + 1] = logits.argmax(-1)
            continue
        p = np.exp(logits - logits.max(-1, keepdims=True)).cumsum(-1)
        tokens[:, position + 1] = (p > rng.random((texts, 1)) * p[:, -1:]).argmax(-1)
    return tokens


def observe(weights: Weights, tokens) -> Ranges:
    """Return the ranges of all values on texts, int [texts, length]."""
    ranges = Ranges()
    with np.errstate(all="ignore"):  # of damaged weights, which `quantize` refuses
        logits_of(FloatModel(weights, see=ranges), tokens)
    return ranges


def logits_of(model, tokens) -> np.ndarray:
    """Return the logits of whole texts, int [texts, length], of a model of either kind."""
    found = []
    for start in range(0, len(tokens), 4):  # the scores of all texts at once are large
        part = tokens[start:start + 4]
        model.start(len(part))
        found.append(model.step(part))
    return np.concatenate(found)


def quantize(weights: Weights, ranges: Ranges, weight_type: str = INT8) -> IntegerWeights:
    """Return the integers of a model, with weights of one of `WEIGHT_TYPES`.

    Raises
    ------
    ModelError
        If the shape, or the scale of a value, is outside the limits of the integers; for a
        microGPT with weights of int4, which no core of it can read.
    """
    shape = weights.shape
    check_limits(shape)
    require(
        weight_type == INT8 or shape.is_llama,
        f"the weights of a {shape.architecture} must be {INT8}, not {weight_type}",
    )
    as_rows = {INT8: _rows, INT4: _int4_rows}[weight_type]
    x_bits = _bits("the residual", ranges["x", 0], 15)
    epsilon = max(1, round(shape.epsilon * shape.dim * 4.0**x_bits))
    rsqrt, r = rsqrt_table(shape.dim)
    # The smallest sum of squares is the epsilon; its norm shifts right, too.
    norm_bits = 14 - r + (int(leading_one(epsilon)) >> 1)

    def norm(name, layer=0):
        bits = _bits(f"{name} {layer}", ranges[name, layer], norm_bits)
        return bits, 15 - r - bits

    logit_bits = _bits("logits", ranges["logits", 0], 15)

    def classifier(bits):
        return as_rows("classifier", weights.classifier, 2.0 ** (logit_bits - bits))

    make = _llama if shape.is_llama else _microgpt
    found = IntegerWeights(
        shape=shape, embedding=as_rows("embedding", weights.embedding, 2.0**x_bits),
        epsilon=epsilon, rsqrt=rsqrt, logit_bits=logit_bits,
        **make(weights, ranges, x_bits, norm, classifier, as_rows),
    )
    check_bounds(found)
    return found


def _llama(weights, ranges, x_bits, norm, classifier, as_rows):
    """The parts of an IntegerWeights that a llama has in its own way."""
    shape = weights.shape
    # A core has one table of SiLU, for all layers.
    h1_bits = min(_bits(f"h1 {layer}", ranges["h1", layer], 15) for layer in range(shape.layers))
    final_bits, final_norm = norm("final_norm")
    y_bits = _bits("the classifier's operand", ranges["y", 0], 15)
    cos, sin = (
        np.minimum(np.rint(part.astype(np.float64) * 32768), 32767).astype(np.int16)
        for part in shape.angles()
    )
    return {
        "layers": tuple(
            _layer(weights, ranges, layer, x_bits, h1_bits, norm, as_rows)
            for layer in range(shape.layers)
        ),
        "final_norm": final_norm, "final_gain": _channels(
            "final gain", weights.final_gain.astype(np.float64) * 2.0 ** (y_bits - final_bits)
        ),
        "classifier": classifier(y_bits), "cos": cos, "sin": sin,
    }


def _microgpt(weights, ranges, x_bits, norm, classifier, as_rows):
    """The same for a microGPT."""
    return {
        "layers": tuple(
            _layer(weights, ranges, layer, x_bits, None, norm, as_rows)
            for layer in range(weights.shape.layers)
        ),
        "position_embedding": as_rows(
            "position embedding", weights.position_embedding, 2.0**x_bits
        ),
        # The residual and the sum of the embeddings have the same bits.
        "embedding_norm": 15 - rsqrt_table(weights.shape.dim)[1] - x_bits,
        "classifier": classifier(x_bits),
        "final_norm": None, "final_gain": None, "cos": None, "sin": None,
    }


def _layer(weights, ranges, layer, x_bits, h1, norm, as_rows):
    """The integers of a layer. The result of ``w1`` of a llama has ``h1`` bits; ``norm(name,
    layer)`` gives the bits and the shift of a norm, ``as_rows`` makes the integers of a product.
    """
    shape, where = weights.shape, f"of layer {layer}"

    def bits(name, limit=15):
        return _bits(f"{name} {where}", ranges[name, layer], limit)

    def rows(name, matrix, factor, gain=None):
        matrix = matrix[layer].astype(np.float64)
        return as_rows(f"{name} {where}", matrix if gain is None else matrix * gain, factor)

    attention_bits, attention_norm = norm("attention_norm", layer)
    ffn_bits, ffn_norm = norm("ffn_norm", layer)
    gain = weights.attention_gain[layer].astype(np.float64)
    k_scale, v_scale = (_cache_scales(ranges[name, layer]) for name in ("k", "v"))
    # The score in units of 2**-SCORE_BITS is the sum of q * unit * k8; q * unit gets as many bits
    # more as int16 holds.
    unit = k_scale.repeat(shape.group, 0) / math.sqrt(shape.head_dim)
    score_shift = _bits(
        f"scores {where}", (ranges["q", layer] * unit).max() * 2.0**SCORE_BITS, MAX_SHIFT - 1
    )
    require(
        score_shift >= 1,
        f"scores {where} must be below {32767 / _MARGIN / 2**SCORE_BITS / 2:g} for each unit of K",
    )
    q_factor = unit.reshape(-1) * 2.0 ** (SCORE_BITS + score_shift)  # of a query without bits
    k_factor = 1 / k_scale.reshape(-1)
    ffn_gain = weights.ffn_gain[layer].astype(np.float64)
    # The mean of V is in units of its channel's scale.
    mean_scale = v_scale.repeat(shape.group, 0).reshape(-1) / 2.0**VALUE_BITS
    if shape.is_llama:
        qk_bits = _bits(
            f"q and k {where}",
            max(ranges[name, layer].max() for name in ("qk", "q", "k")), 15,
        )
        own = {
            "k_cache": _channels(f"K {where}", k_factor * 2.0**-qk_bits),
            "q_scores": _channels(f"q {where}", q_factor * 2.0**-qk_bits),
        }
        q_factor = k_factor = 2.0**qk_bits
        h3 = bits("h3")
        h = bits("h", h1 + h3 - 1)
        own |= {
            "w1": rows("w1", weights.w1, 2.0 ** (h1 - ffn_bits), ffn_gain),
            "w3": rows("w3", weights.w3, 2.0 ** (h3 - ffn_bits), ffn_gain),
            "silu": silu_table(h1), "gate_shift": h1 + h3 - h,
        }
    else:
        h = bits("h")
        own = {
            "k_cache": None, "q_scores": None, "w3": None, "silu": None, "gate_shift": None,
            "w1": rows("w1", weights.w1, 2.0 ** (h - ffn_bits), ffn_gain),
        }
    return IntegerLayer(
        attention_norm=attention_norm,
        q=rows("wq", weights.wq, q_factor * 2.0**-attention_bits, gain),
        k=rows("wk", weights.wk, k_factor * 2.0**-attention_bits, gain),
        v=rows("wv", weights.wv, 2.0**-attention_bits / v_scale.reshape(-1), gain),
        score_shift=score_shift,
        o=rows("wo", weights.wo, 2.0**x_bits, mean_scale),
        ffn_norm=ffn_norm,
        w2=rows("w2", weights.w2, 2.0 ** (x_bits - h)),
        **own,
    )


def _bits(what, largest, limit):
    """The bits after the binary point of an int16 map, from its largest magnitude."""
    if not np.isfinite(largest):
        raise ModelError(f"{what} must be a number, not {largest}: the weights are damaged")
    bits = limit
    if largest > 0:
        bits = min(limit, math.floor(math.log2(32767 / (float(largest) * _MARGIN))))
    require(bits >= 0, f"{what} must be at most {32767 / _MARGIN:g}, not {largest:g}")
    return bits


def _cache_scales(largest):
    """The scale of each channel of K or V; channels with small values limit no multiplier."""
    scales = largest * _CACHE_MARGIN / 127
    return np.maximum(scales, scales.max() / 128) if scales.max() > 0 else scales + 1


def _multipliers(what, ratio):
    """Ratios as int16 with one shift."""
    largest = np.abs(ratio).max()
    if largest == 0:
        return np.zeros(len(ratio), np.int16), 1
    shift = 14 - math.floor(math.log2(largest))
    if not 1 <= shift <= MAX_SHIFT:
        raise ModelError(f"the scale of {what} must be in 2**-33..2**13, not {largest:g}")
    return np.clip(np.rint(ratio * 2.0**shift), -32767, 32767).astype(np.int16), shift


def _channels(what, ratio):
    return Channels(*_multipliers(what, ratio))


def _numbers(what, matrix):
    """Weights in float64; ModelError if one is no number."""
    if not np.isfinite(matrix).all():
        raise ModelError(f"{what} must be numbers; the weights are damaged")
    return matrix.astype(np.float64)


def _rows(what, matrix, factor):
    """Weights of float as rows of int8; ``factor`` is a result's unit over an operand's."""
    matrix = _numbers(what, matrix)
    magnitude = np.abs(matrix)
    # Half a unit for the rounding of each weight.
    scale = np.maximum(
        magnitude.max(1) / 127, magnitude.sum(1) / (_ROW_SUM - matrix.shape[1] / 2)
    )
    weights = np.rint(matrix / np.where(scale > 0, scale, 1)[:, None]).astype(np.int8)
    return Rows(weights, *_multipliers(what, scale * factor))


def _int4_rows(what, matrix, factor):
    """The same with weights of int4. The group with the largest weight has the largest scale."""
    matrix = _numbers(what, matrix)
    scale = np.abs(matrix).max(1) / (CODES[1] * MAX_SCALE)
    weights = np.zeros(matrix.shape, np.int8)
    wrong = np.arange(len(matrix))
    while len(wrong):
        for rows in np.array_split(wrong, -(-len(wrong) // 512)):  # the memory of as many
            unit = np.where(scale[rows] > 0, scale[rows], 1)
            weights[rows] = nearest(matrix[rows] / unit[:, None])
        wrong = wrong[np.abs(weights[wrong].astype(np.int64)).sum(1) > _ROW_SUM]
        scale[wrong] *= 1.25  # smaller weights, until their magnitudes fit a sum
    return Rows(weights, *_multipliers(what, scale * factor))


# The bounds.

def check_limits(shape: Shape) -> None:
    """Raise ModelError for a shape whose sums could leave their width."""
    for name, value, limit in (
        ("dim", shape.dim, MAX_DIM), ("hidden", shape.hidden, MAX_DIM),
        ("head_dim", shape.head_dim, MAX_HEAD_DIM), ("positions", shape.positions, MAX_POSITIONS),
        ("vocab", shape.vocab, MAX_VOCAB),
    ):
        if not 1 <= value <= limit:
            raise ModelError(f"{name} must be in 1..{limit:,}, so that sums fit, not {value:,}")
    require(shape.layers <= MAX_LAYERS, f"layers must be in 1..{MAX_LAYERS}, not {shape.layers:,}")


def check_bounds(weights: IntegerWeights) -> None:
    """Prove that no sum leaves int32, and no shift its range, whatever the maps are.

    A sum of a product is at most ``2**15`` times the sum of the magnitudes of a row. Sums of
    scores, of ``p * V``, of exponentials and of squares are bounded by the shape.

    Raises ModelError for a row or a shift that breaks the bound.
    """
    check_limits(weights.shape)
    parts = [("embedding", weights.embedding), ("classifier", weights.classifier)]
    names = ("q", "k", "v", "o", "w1", "w3", "w2")
    for number, layer in enumerate(weights.layers):
        parts += [(f"{name} of layer {number}", getattr(layer, name)) for name in names]
    parts.append(("position embedding", weights.position_embedding))
    parts = [(name, rows) for name, rows in parts if rows is not None]
    for name, rows in parts:
        largest = int(np.abs(rows.weights.astype(np.int64)).sum(1).max())
        require(
            largest <= _ROW_SUM,
            f"{name}: the magnitudes of a row must add up to at most {_ROW_SUM:,}, not"
            f" {largest:,}, so that its sums fit int32",
        )
    shifts = [(name, rows.shift) for name, rows in parts]
    smallest = int(leading_one(weights.epsilon)) >> 1
    if weights.shape.is_llama:
        shifts.append(("final gain", weights.final_gain.shift))
        norms = [("final norm", weights.final_norm)]
    else:
        norms = [("norm of the embedding", weights.embedding_norm)]
    for number, layer in enumerate(weights.layers):
        where = f"of layer {number}"
        shifts.append((f"scores {where}", layer.score_shift))
        if weights.shape.is_llama:
            shifts += [
                (f"K {where}", layer.k_cache.shift), (f"q {where}", layer.q_scores.shift),
                (f"gate {where}", layer.gate_shift),
            ]
        norms += [(f"norm {where}", layer.attention_norm), (f"norm {where}", layer.ffn_norm)]
    # The sum of squares has at most 48 bits.
    shifts += [(name, smallest + shift) for name, shift in norms]
    shifts += [(name, 23 + shift) for name, shift in norms]
    for name, shift in shifts:
        require(1 <= shift <= MAX_SHIFT, f"{name}: shift must be in 1..{MAX_SHIFT}, not {shift}")
