"""A microGPT in integers and in float32, with random weights."""

import dataclasses

import numpy as np
import pytest
from language_models import random_microgpt

from weft.golden.language import FloatModel, IntegerModel, Shape
from weft.golden.language.operations import exp_table, reciprocal_table
from weft.models.language.quantization import observe, quantize

SHAPE = Shape(
    dim=24, layers=2, heads=3, kv_heads=3, hidden=40, vocab=30, positions=14,
    architecture="microgpt",
)
TOKENS = [4, 29, 4, 11, 0, 7]


@pytest.fixture(scope="module")
def weights():
    return random_microgpt(SHAPE, seed=1)


@pytest.fixture(scope="module")
def texts():
    return np.random.default_rng(2).integers(0, SHAPE.vocab, (12, SHAPE.positions))


@pytest.fixture(scope="module")
def integers(weights, texts):
    return quantize(weights, observe(weights, texts))


def _logits(model, texts):
    model.start(len(texts))
    return model.step(texts)


def test_the_well_known_shape_has_4192_weights():
    from language_models import MICROGPT

    classifier = MICROGPT.vocab * MICROGPT.dim
    assert MICROGPT.parameters + classifier == 4192


def test_rejects_an_architecture():
    with pytest.raises(ValueError, match=r"^architecture must be llama or microgpt, not gpt2$"):
        dataclasses.replace(SHAPE, architecture="gpt2")


def test_float_equals_the_formulas_of_microgpt(weights):
    """The function gpt of microgpt.py, in float64: position by position, head by head."""
    def rmsnorm(x):
        return x / np.sqrt(np.mean(x * x) + 1e-5)

    keys, values = [[] for _ in range(2)], [[] for _ in range(2)]
    for position, token in enumerate(TOKENS):
        x = rmsnorm(weights.embedding[token].astype(float) + weights.position_embedding[position])
        for layer in range(2):
            a = rmsnorm(x)
            q, k, v = (m[layer].astype(float) @ a for m in (weights.wq, weights.wk, weights.wv))
            keys[layer].append(k)
            values[layer].append(v)
            attended = []
            for head in range(3):
                mine = slice(8 * head, 8 * head + 8)
                scores = np.array([q[mine] @ each[mine] / 8**0.5 for each in keys[layer]])
                p = np.exp(scores - scores.max())
                p /= p.sum()
                attended += list(sum(
                    p[t] * values[layer][t][mine] for t in range(position + 1)
                ))
            x = x + weights.wo[layer] @ np.array(attended)
            h = np.maximum(weights.w1[layer] @ rmsnorm(x), 0)
            x = x + weights.w2[layer] @ h
        expected = weights.classifier @ x
    found = _logits(FloatModel(weights), np.array([TOKENS]))[0, -1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


def test_integers_are_close_to_float(weights, integers, texts):
    exact = _logits(FloatModel(weights), texts)
    found = _logits(IntegerModel(integers), texts) / 2.0**integers.logit_bits
    assert np.sqrt(np.mean((found - exact) ** 2)) < 0.02 * exact.std()


def test_one_by_one_equals_all_at_once(integers, texts):
    model = IntegerModel(integers)
    whole = _logits(model, texts)
    model.start(len(texts))
    parts = np.concatenate([model.step(texts[:, :5]), *(
        model.step(texts[:, i : i + 1]) for i in range(5, SHAPE.positions)
    )], axis=1)
    assert np.array_equal(whole, parts)


@pytest.mark.parametrize("kind", ["as quantized", "too loud"])
def test_integers_equal_a_plain_loop(integers, kind):
    """Each operation of a token in Python's integers; too loud, maps saturate."""
    w = integers
    if kind == "too loud":
        w = dataclasses.replace(w, layers=tuple(
            dataclasses.replace(layer, **{
                name: dataclasses.replace(getattr(layer, name), shift=4) for name in ("o", "w2")
            }) for layer in w.layers
        ))

    def s(v, m, e, bits=16):
        top = (1 << bits - 1) - 1
        return max(-top - 1, min(top, int(v) * int(m) + (1 << e - 1) >> e))

    def rows(a, part, bits=16):
        sums = [sum(int(x) * int(y) for x, y in zip(row, a, strict=True)) for row in part.weights]
        assert all(abs(total) < 2**31 for total in sums)
        return [s(v, m, part.shift, bits) for v, m in zip(sums, part.multipliers, strict=True)]

    def row(part, number):
        return [s(v, part.multipliers[number], part.shift) for v in part.weights[number]]

    def look(table, u):
        return int(table.base[u >> 7]) + (int(table.slope[u >> 7]) * (u & 127) + 64 >> 7)

    def after(v, k, bits):
        return (v >> k - bits if k >= bits else v << bits - k) & (1 << bits) - 1

    def norm(x, shift):
        squares = sum(v * v for v in x) + w.epsilon
        k = squares.bit_length() - 1
        m = look(w.rsqrt, (k & 1) << 15 | after(squares, k, 15))
        return [s(v, m, (k >> 1) + shift) for v in x]

    def add(x, y):
        return [max(-32768, min(32767, a + b)) for a, b in zip(x, y, strict=True)]

    model, keys, values = IntegerModel(w), {}, {}
    for position, token in enumerate(TOKENS):
        x = norm(add(row(w.embedding, token), row(w.position_embedding, position)),
                 w.embedding_norm)
        for layer, p in enumerate(w.layers):
            a = norm(x, p.attention_norm)
            q = rows(a, p.q)
            keys[layer, position], values[layer, position] = rows(a, p.k, 8), rows(a, p.v, 8)
            mean = []
            for head in range(3):
                mine, seen = range(8 * head, 8 * head + 8), range(position + 1)
                score = [
                    s(sum(q[c] * keys[layer, t][c] for c in mine), 1, p.score_shift) for t in seen
                ]
                e = [look(exp_table(), min((max(score) - v) * 16, 65535)) for v in score]
                total = sum(e)
                first = total.bit_length() - 1
                m = look(reciprocal_table(), after(total, first, 16))
                mean += [
                    s(sum(e[t] * values[layer, t][c] for t in seen), m, first + 16 - 8)
                    for c in mine
                ]
            x = add(x, rows(mean, p.o))
            h = [max(v, 0) for v in rows(norm(x, p.ffn_norm), p.w1)]
            x = add(x, rows(h, p.w2))
        assert model.step(np.array([[token]]))[0, 0].tolist() == rows(x, w.classifier)
