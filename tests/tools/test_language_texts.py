"""The comparison of texts of a language core with the golden model."""

import math

import numpy as np
import pytest
from language_programs import golden_text, quantized

import weft
from tools import language_texts
from weft.golden.language.sampling import sampling, start_state


def test_prompts_differ_and_fit():
    """In 256 positions, with the tokens that follow."""
    prompts = language_texts.prompts()
    assert len({*prompts}) == 25
    encode = weft.load(language_texts.MODEL).tokenizer.encode
    assert max(len(encode(text)) for text in prompts) + language_texts.TOKENS - 1 <= 256


def test_each_other_token_counts():
    weights = quantized()
    how, state = sampling(3, 0, weights.logit_bits), start_state(4)
    tokens = golden_text(weights, [3, 9], 21, None, how, state)
    assert language_texts.differences(weights, [3, 9], tokens, how, state) == 0
    wrong = [*tokens[:-1], tokens[-1] ^ 1]
    assert language_texts.differences(weights, [3, 9], wrong, how, state) == 1
    assert language_texts.differences(weights, [3, 9], tokens, how, state ^ 2) > 0


def test_the_distance_of_two_logits():
    """By hand: weights of 32,767 and of 2**15 / e, rounded as in the table."""
    divergence, variation = language_texts.distance(np.array([[512, 0]]), 1.0, 9)
    q = np.array([32767, round(32768 / math.e)]) / (32767 + round(32768 / math.e))
    p = np.array([math.e, 1]) / (math.e + 1)
    assert divergence == pytest.approx((q * np.log(q / p)).sum(), abs=1e-9)
    assert variation == pytest.approx(abs(q[0] - p[0]), abs=1e-5)


def test_without_the_public_model_nothing_runs(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("WEFT_NETWORKS", str(tmp_path))
    monkeypatch.setattr(language_texts, "LanguageSimulation", lambda config: pytest.fail("built"))
    assert language_texts.main() == 2
    assert "must be a folder with stories260K.bin" in capsys.readouterr().err
