"""Programs of language models: quantization, bounds, files, sessions."""

import dataclasses
import json
import os
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest
from language_models import MICROGPT, SMALL, pieces, random_microgpt, random_weights

import weft
from weft.golden.language import FloatModel, IntegerModel
from weft.golden.language.sampling import sample, sampling, start_state
from weft.models.errors import ModelError
from weft.models.language.agreement import Agreement, agreement, compared
from weft.models.language.model import LanguageModel
from weft.models.language.program import until
from weft.models.language.quantization import check_bounds, observe, quantize, sampled_texts


@pytest.fixture(scope="module")
def model():
    return LanguageModel("small", "llama2.c", random_weights(SMALL, 5), pieces(), 48)


@pytest.fixture(scope="module")
def program(model):
    return model.compile()


# Quantization

def test_rows_are_the_weights_in_units_of_their_scales(model, program):
    """The embedding of a token, and a product, in real values."""
    weights, integers = model.weights, program.weights
    rows = integers.embedding
    maps = rows.weights * (rows.multipliers / 2.0**rows.shift)[:, None]
    bits = round(np.log2(np.abs(maps).max() / np.abs(weights.embedding).max()))
    real = maps / 2.0**bits
    largest = np.abs(weights.embedding).max(1, keepdims=True)
    assert (np.abs(real - weights.embedding) <= largest / 127 * 0.51 + 1e-3).all()
    assert np.abs(rows.weights).max() == 127


def test_a_heavy_row_gets_a_scale_so_that_its_sums_fit(model):
    """A row of 65,536 equal weights would add up to 127 times as much."""
    shape = dataclasses.replace(SMALL, hidden=4096, layers=1)
    weights = random_weights(shape, 6)
    w2 = np.full_like(weights.w2, 0.01)
    weights = dataclasses.replace(weights, w2=w2)
    found = quantize(weights, observe(weights, np.arange(48).reshape(2, 24)))
    sums = np.abs(found.layers[0].w2.weights.astype(int)).sum(1)
    assert (sums * 2**15 < 2**31).all() and sums.max() > 4096 * 14


def test_rows_of_int4_have_the_best_scales(model):
    """Each group against all scales and codes, in Python; and each row is its scale times them."""
    found = quantize(model.weights, observe(model.weights, np.arange(48).reshape(2, 24)), "int4")
    rows, matrix = found.layers[1].w2, model.weights.w2[1].astype(float)
    for number in range(0, len(matrix), 5):
        values = matrix[number] / (np.abs(matrix[number]).max() / 105)
        for first in range(0, matrix.shape[1], 16):
            group = values[first : first + 16]
            least = min(
                sum(min((code * scale - value) ** 2 for code in range(-8, 8)) for value in group)
                for scale in range(1, 16)
            )
            error = ((rows.weights[number, first : first + 16] - group) ** 2).sum()
            assert error == pytest.approx(least)
    assert found.weight_type == "int4"
    assert all(np.array_equal(a, b) for a, b in zip(
        (found.classifier.weights,), (found.embedding.weights,), strict=True
    ))


def test_a_heavy_row_of_int4_fits_its_sums(model):
    shape = dataclasses.replace(SMALL, hidden=4096, layers=1)
    weights = random_weights(shape, 6)
    weights = dataclasses.replace(weights, w2=np.full_like(weights.w2, 0.01))
    found = quantize(weights, observe(weights, np.arange(48).reshape(2, 24)), "int4").layers[0].w2
    sums = np.abs(found.weights.astype(int)).sum(1)
    assert (sums * 2**15 < 2**31).all() and sums.max() > 4096 * 8


def test_a_microgpt_has_weights_of_int8():
    weights = random_microgpt(MICROGPT, 1)
    with pytest.raises(ModelError, match="^the weights of a microgpt must be int8, not int4$"):
        quantize(weights, observe(weights, np.arange(4).reshape(1, 4)), "int4")


def test_each_channel_of_the_cache_has_its_scale(model):
    ranges = observe(model.weights, np.arange(48).reshape(2, 24))
    found = quantize(model.weights, ranges)
    for layer, parts in enumerate(found.layers):
        cache = parts.k_cache
        # A channel's largest key times its multiplier is 127 / 1.15 for all channels.
        reach = ranges["k", layer].reshape(-1) * cache.multipliers / 2.0**cache.shift
        np.testing.assert_allclose(reach / reach.mean(), 1, rtol=1e-3)


def test_zero_weights_are_quantized(model):
    weights = dataclasses.replace(
        model.weights, wk=np.zeros_like(model.weights.wk), w2=np.zeros_like(model.weights.w2)
    )
    texts = np.arange(48).reshape(2, 24)
    found = quantize(weights, observe(weights, texts))
    exact, close = FloatModel(weights), IntegerModel(found)
    for one in (exact, close):
        one.start(2)
    logits = exact.step(texts)
    error = close.step(texts) / 2.0**found.logit_bits - logits
    assert error.std() < 0.02 * logits.std()


@pytest.mark.parametrize("change, text", [
    ({"embedding": 1e6}, "must be at most 16383.5, not"),
    ({"wq": 1e5, "wk": 1e5}, "must be (at most|below)"),
    ({"embedding": 1e30}, "must be"),
])
def test_values_that_no_scale_holds_are_refused(model, change, text):
    weights = dataclasses.replace(model.weights, **{
        name: getattr(model.weights, name) * np.float32(factor) for name, factor in change.items()
    })
    with pytest.raises(ModelError, match=text):
        quantize(weights, observe(weights, np.arange(48).reshape(2, 24)))


def test_bounds_are_proved_of_each_part(program):
    integers = program.weights
    layer = integers.layers[1]
    heavy = dataclasses.replace(layer.w2, weights=np.full_like(layer.w2.weights, 127))
    heavy = dataclasses.replace(heavy, weights=np.full((32, 600), 127, np.int8))
    cases = {
        "w2 of layer 1: the magnitudes of a row must add up to at most 65,535, not 76,200":
            {"w2": heavy},
        "scores of layer 1: shift must be in 1..47, not 0": {"score_shift": 0},
        "norm of layer 1: shift must be in 1..47, not": {"ffn_norm": -40},
        "q of layer 1: shift must be in 1..47, not 48":
            {"q_scores": dataclasses.replace(layer.q_scores, shift=48)},
    }
    for text, change in cases.items():
        wrong = dataclasses.replace(layer, **change)
        with pytest.raises(ModelError, match=text):
            check_bounds(dataclasses.replace(integers, layers=(integers.layers[0], wrong)))
    long = dataclasses.replace(integers.shape, positions=513)
    with pytest.raises(ModelError, match="positions must be in 1..512, so that sums fit, not 513"):
        check_bounds(dataclasses.replace(integers, shape=long))


def test_texts_are_samples_of_the_model(model):
    texts = sampled_texts(model.weights, 1, 3, texts=3, length=20)
    assert texts.shape == (3, 20) and (texts[:, 0] == 1).all()
    assert np.array_equal(texts, sampled_texts(model.weights, 1, 3, texts=3, length=20))
    assert not np.array_equal(texts, sampled_texts(model.weights, 1, 4, texts=3, length=20))
    greedy = sampled_texts(model.weights, 1, 3, texts=3, length=20, greedy_from=5)
    assert np.array_equal(greedy[:, :5], texts[:, :5])
    exact = FloatModel(model.weights)
    exact.start(3)
    assert np.array_equal(exact.step(greedy)[:, 4:-1].argmax(-1), greedy[:, 5:])
    assert len(sampled_texts(model.weights, 1, 3, length=999)[0]) == SMALL.positions


# Agreement

def test_compared_is_perplexity_divergence_and_equal_tokens():
    exact = np.log(np.array([[[0.5, 0.25, 0.25], [0.8, 0.1, 0.1], [1, 1, 1]]]))
    found = np.log(np.array([[[0.25, 0.5, 0.25], [0.8, 0.1, 0.1], [1, 1, 1]]])) + 3
    tokens = np.array([[0, 1, 0]])
    expected = (
        1 / np.sqrt(0.25 * 0.8), 1 / np.sqrt(0.5 * 0.8),
        (0.5 * np.log(2) - 0.25 * np.log(2)) / 2, 0.5,
    )
    np.testing.assert_allclose(compared(exact, found, tokens), expected)


def test_integers_agree_with_float(model, program):
    found = agreement(model, program)
    assert abs(found.increase) < 0.003 and 0 < found.divergence < 0.002 and found.greedy > 0.97


def test_broken_limits_are_told():
    assert Agreement(4, 4.01, 0.001, 0.99).problems() == []
    assert Agreement(4, 4.1, 0.003, 0.9).problems() == [
        "perplexity must rise by at most 0.3%, not 2.50%",
        "KL must be at most 0.002, not 0.00300",
        "equal greedy tokens must be at least 98%, not 90.00%",
    ]


# Files

def test_a_file_gives_the_program_back(program, tmp_path):
    program.save(tmp_path / "a.weft")
    found = weft.load(tmp_path / "a.weft")
    found.save(tmp_path / "b.weft")
    assert (tmp_path / "a.weft").read_bytes() == (tmp_path / "b.weft").read_bytes()
    assert "".join(found.open().generate("the", 20)) == "".join(program.open().generate("the", 20))


def test_a_damaged_file_is_refused_or_runs(program, tmp_path):
    path = tmp_path / "a.weft"
    program.save(path)
    whole, rng, refused = path.read_bytes(), random.Random(1), 0
    start = whole.index(b'{"format"')
    for number in range(80):
        data = bytearray(whole)
        place = start + rng.randrange(9000) if number % 2 else rng.randrange(len(data))
        if number % 4 < 2:
            data[place] = rng.randrange(256)
        else:
            del data[place:place + rng.randrange(1, 300)]
        try:
            weft.load(bytes(data), "a")
        except ModelError as error:
            assert "\n" not in str(error)
            refused += 1
    assert refused > 60


def _edited(path, edit):
    """A file whose program.json is edited."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    main = json.loads(parts["program.json"])
    edit(main["program"]["fields"])
    parts["program.json"] = json.dumps(main).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


@pytest.mark.parametrize("place, value, text", [
    (("weights", "shape", "positions"), 1 << 40, "int16|positions must be in 1..512"),
    (("weights", "shape", "dim"), 64, r"embedding must be int8 \[300, 64\], not int8 \[300, 32\]"),
    (("weights", "shape", "heads"), 0, "heads must be 1 or more, not 0"),
    (("weights", "shape", "layers"), 3, "layers must be 3, not 2"),
    (("weights", "epsilon"), 0, r"epsilon must be in 1..2\*\*46 - 1"),
    (("weights", "logit_bits"), 16, "logit_bits must be in 0..15"),
    (("weights", "final_gain", "shift"), 0, "final gain: shift must be in 1..47, not 0"),
    (("tokenizer", "bos"), 300, "must be in 0..299, not 300"),
])
def test_a_wrong_value_is_named(program, tmp_path, place, value, text):
    path = tmp_path / "a.weft"
    program.save(path)

    def edit(fields):
        *path_to, last = place
        for key in path_to:
            fields = fields[key]["fields"]
        fields[last] = value

    _edited(path, edit)
    with pytest.raises(ModelError, match=text):
        weft.load(path)


# Sessions

def test_a_session_samples_token_by_token(program):
    """Against the model and `sample`, with the whole text in one call at each token."""
    session = program.open()
    text = "".join(session.generate("the ants", 12, temperature=5, min_p=0.02, seed=7))
    how = sampling(5, 0.02, program.weights.logit_bits)
    tokens, state = program.tokenizer.encode("the ants"), start_state(7)
    count = len(tokens)
    assert (session.prompt_tokens, session.ended) == (count, "tokens")
    model = IntegerModel(program.weights)
    for _ in range(12):
        model.start(1)
        token, state = sample(model.step(np.array([tokens]))[0, -1], how, state)
        tokens.append(token)
    assert session.tokens == tokens
    stream = program.tokenizer.stream()
    parts = [stream.push(token) for token in tokens] + [stream.end()]
    assert text == "".join(parts[count:])
    "".join(session.generate("the ants", 12, temperature=5, min_p=0.02, seed=8))
    assert session.tokens != tokens


def test_a_text_ends_when_the_cache_is_full(program):
    session = program.open()
    "".join(session.generate("the", 500))
    assert session.ended == "cache" and len(session.tokens) == SMALL.positions + 1
    prompt = "the " * 30
    longest = len(program.tokenizer.encode(prompt))
    assert longest < SMALL.positions
    with pytest.raises(ModelError, match="must have at most 47 tokens, so that one can follow"):
        session.generate("xyz" * 40, 5)


def test_a_stop_token_ends_a_text(program):
    session = program.open()
    "".join(session.generate("the", 10))
    third = session.tokens[session.prompt_tokens + 2]
    until = session.tokens[:session.tokens.index(third, session.prompt_tokens)]
    stopped = dataclasses.replace(
        program, tokenizer=dataclasses.replace(program.tokenizer, stops=(third,))
    ).open()
    "".join(stopped.generate("the", 10))
    assert stopped.tokens == until and stopped.ended == "stop token"


class _Stream:
    """A text that comes in pieces."""

    ended = ""


@pytest.mark.parametrize("stop, expected, ended", [
    ("", ["ab", "c ab", "cd", " x"], ""),
    ("abcd", ["abc "], "stop text"),
    ("abce", ["abc ", "abcd", " x"], ""),
    ("x", ["ab", "c ab", "cd", " "], "stop text"),
    ("ab", [], "stop text"),
    ("xy", ["ab", "c ab", "cd", " ", "x"], ""),
])
def test_what_may_begin_the_stop_text_waits(stop, expected, ended):
    session = _Stream()
    assert list(until(stop, iter(["ab", "c ab", "cd", " x"]), session)) == expected
    assert session.ended == ended


@pytest.mark.parametrize("arguments, text", [
    ({"tokens": 0}, "tokens must be 1 or more, not 0"),
    ({"temperature": -1}, "temperature must be 0, or in 0.01..100, not -1"),
    ({"temperature": 1, "min_p": 2}, "min-p must be in 0..1, not 2"),
])
def test_wrong_arguments_are_refused_at_once(program, arguments, text):
    with pytest.raises(ModelError, match=text):
        program.open().generate("the", **{"tokens": 5, **arguments})


# stories260K

# What the tests of llama2.c expect of it, at temperature 0 in 200 steps (its workflow build.yml).
LLAMA2C = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."
    " One day, she saw a big, red ball. She wanted to play with it, but it was too high.\nLily's"
    " mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to do. She said,"
    " \"I want to play with your ball, but I can't find it.\"\nLily was sad and didn't know what to"
    " do. She said, \"I'm sorry, Lily. I didn't know what to do.\"\nLily didn't want to help her"
    " mom, so she"
)


@pytest.fixture(scope="module")
def stories():
    if "WEFT_NETWORKS" not in os.environ:
        pytest.skip("WEFT_NETWORKS must name a folder with stories260K.bin and tok512.bin")
    return weft.load(Path(os.environ["WEFT_NETWORKS"]) / "stories260K.bin")


def test_float_writes_the_text_of_llama2c(stories):
    model, stream = FloatModel(stories.weights), stories.tokenizer.stream()
    token, parts = 1, []
    for _ in range(200):
        token = int(model.step(np.array([[token]]))[0, 0].argmax())
        parts.append(stream.push(token))
    assert "".join(parts) == LLAMA2C


@pytest.mark.slow
def test_integers_of_stories260k_agree_with_float(stories):
    """The limits of `weft run --check float`."""
    program = stories.compile()
    assert agreement(stories, program).problems() == []
    text = "".join(program.open().generate("", 40))
    assert text == LLAMA2C[:len(text)]
