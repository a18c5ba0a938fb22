"""The models in integers and in float32, on a small model with random weights."""

import dataclasses

import numpy as np
import pytest
from language_models import random_weights

from weft.golden.language import FloatModel, IntegerModel, Shape
from weft.golden.language.operations import exp_table, reciprocal_table
from weft.models.language.quantization import observe, quantize

SHAPE = Shape(
    dim=24, layers=2, heads=6, kv_heads=3, hidden=40, vocab=50, positions=40, rope_theta=500.0
)


@pytest.fixture(scope="module")
def weights():
    return random_weights(SHAPE, seed=1)


@pytest.fixture(scope="module")
def texts():
    return np.random.default_rng(2).integers(0, SHAPE.vocab, (5, SHAPE.positions))


@pytest.fixture(scope="module")
def integers(weights, texts):
    return quantize(weights, observe(weights, texts))


def _logits(model, texts):
    model.start(len(texts))
    return model.step(texts)


def test_float_equals_the_formulas_of_one_position(weights):
    """Position by position, head by head, in float64."""
    tokens = [7, 3, 3, 20, 49, 0]
    keys, values = {}, {}
    for position, token in enumerate(tokens):
        x = weights.embedding[token].astype(float)
        for layer in range(SHAPE.layers):
            a = x / np.sqrt(np.mean(x**2) + 1e-5) * weights.attention_gain[layer]
            q, k, v = (m[layer].astype(float) @ a for m in (weights.wq, weights.wk, weights.wv))
            for part in (q, k):
                for i in range(0, len(part), 2):
                    angle = position * 500.0 ** -(i % 4 / 4)
                    turned = complex(part[i], part[i + 1]) * np.exp(1j * angle)
                    part[i], part[i + 1] = turned.real, turned.imag
            keys[layer, position], values[layer, position] = k, v
            out = []
            for head in range(6):
                mine = slice(head // 2 * 4, head // 2 * 4 + 4)
                s = [q[head * 4:head * 4 + 4] @ keys[layer, t][mine] / 2
                     for t in range(position + 1)]
                p = np.exp(s) / np.exp(s).sum()
                out += list(sum(p[t] * values[layer, t][mine] for t in range(position + 1)))
            x = x + weights.wo[layer] @ np.array(out)
            a = x / np.sqrt(np.mean(x**2) + 1e-5) * weights.ffn_gain[layer]
            h1 = weights.w1[layer] @ a
            x = x + weights.w2[layer] @ (h1 / (1 + np.exp(-h1)) * (weights.w3[layer] @ a))
        a = x / np.sqrt(np.mean(x**2) + 1e-5) * weights.final_gain
        expected = weights.classifier @ a
    found = _logits(FloatModel(weights), np.array([tokens]))[0, -1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


def test_integers_are_close_to_float(weights, integers, texts):
    exact = _logits(FloatModel(weights), texts)
    found = _logits(IntegerModel(integers), texts) / 2.0**integers.logit_bits
    # int8 rows alone give some 1 % of the deviation of the logits.
    assert np.sqrt(np.mean((found - exact) ** 2)) < 0.02 * exact.std()


@pytest.mark.parametrize("kind", ["integers", "float"])
def test_one_by_one_equals_all_at_once(weights, integers, texts, kind):
    model = IntegerModel(integers) if kind == "integers" else FloatModel(weights)
    whole = _logits(model, texts)
    model.start(len(texts))
    parts = np.concatenate([model.step(texts[:, :7]), *(
        model.step(texts[:, i:i + 1]) for i in range(7, SHAPE.positions)
    )], axis=1)
    assert model.position == SHAPE.positions
    if kind == "integers":
        assert np.array_equal(whole, parts)
    else:
        np.testing.assert_allclose(parts, whole, rtol=0, atol=2e-5)


@pytest.mark.parametrize("kind", ["as quantized", "too loud"])
def test_integers_equal_a_plain_loop(integers, kind):
    """Each operation of a token in Python's integers, from the fields of the weights.

    With multipliers that are far too large, maps saturate, and no sum wraps.
    """
    w, tokens = integers, [4, 30, 4, 11]
    if kind == "too loud":
        loud = [
            dataclasses.replace(layer, **{
                name: dataclasses.replace(getattr(layer, name), shift=4) for name in ("o", "w2")
            })
            for layer in w.layers
        ]
        w = dataclasses.replace(w, layers=tuple(loud))
    model = IntegerModel(w)
    keys, values = {}, {}

    def s(v, m, e, bits=16):
        top = (1 << bits - 1) - 1
        return max(-top - 1, min(top, int(v) * int(m) + (1 << e - 1) >> e))

    def rows(a, part, bits=16):
        sums = [sum(int(x) * int(y) for x, y in zip(row, a, strict=True)) for row in part.weights]
        assert all(abs(total) < 2**31 for total in sums)
        return [s(v, m, part.shift, bits) for v, m in zip(sums, part.multipliers, strict=True)]

    def look(table, u):
        return int(table.base[u >> 7]) + (int(table.slope[u >> 7]) * (u & 127) + 64 >> 7)

    def after(v, k, bits):
        return (v >> k - bits if k >= bits else v << bits - k) & (1 << bits) - 1

    def norm(x, shift):
        squares = sum(v * v for v in x) + w.epsilon
        k = squares.bit_length() - 1
        m = look(w.rsqrt, (k & 1) << 15 | after(squares, k, 15))
        return [s(v, m, (k >> 1) + shift) for v in x]

    def turn(x, position):
        y = []
        for i in range(0, len(x), 2):
            c, d = (int(part[position, i % 4 // 2]) for part in (w.cos, w.sin))
            y += [s(x[i] * c - x[i + 1] * d, 1, 15), s(x[i] * d + x[i + 1] * c, 1, 15)]
        return y

    def channels(x, part, bits=16):
        return [s(v, m, part.shift, bits) for v, m in zip(x, part.multipliers, strict=True)]

    def add(x, y):
        return [max(-32768, min(32767, a + b)) for a, b in zip(x, y, strict=True)]

    for position, token in enumerate(tokens):
        part = w.embedding
        x = [s(v, part.multipliers[token], part.shift) for v in part.weights[token]]
        for layer, p in enumerate(w.layers):
            a = norm(x, p.attention_norm)
            q, k = (turn(rows(a, each), position) for each in (p.q, p.k))
            keys[layer, position] = channels(k, p.k_cache, 8)
            values[layer, position] = rows(a, p.v, 8)
            q, mean = channels(q, p.q_scores), []
            for head in range(6):
                mine = range(head // 2 * 4, head // 2 * 4 + 4)
                seen = range(position + 1)
                score = [
                    s(sum(q[head * 4 + c % 4] * keys[layer, t][c] for c in mine), 1, p.score_shift)
                    for t in seen
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
            a = norm(x, p.ffn_norm)
            gate = [look(p.silu, v + 32768) for v in rows(a, p.w1)]
            h = [s(g * v, 1, p.gate_shift) for g, v in zip(gate, rows(a, p.w3), strict=True)]
            x = add(x, rows(h, p.w2))
        y = channels(norm(x, w.final_norm), w.final_gain)
        expected = rows(y, w.classifier)
        found = model.step(np.array([[token]]))[0, 0]
        assert found.tolist() == expected


def test_texts_of_a_batch_do_not_meet(integers, texts):
    model = IntegerModel(integers)
    whole = _logits(model, texts)
    for number in (0, 4):
        assert np.array_equal(_logits(model, texts[number:number + 1])[0], whole[number])
