"""The microGPT of the examples: its names, its training, and how well it knows them."""

import random
from pathlib import Path

import numpy as np
import pytest

import weft
from tools.name_grammar import CHARS, LONGEST, name
from weft.golden.language import IntegerModel

MODEL = Path(__file__).resolve().parent.parent.parent / "examples" / "names.weft"
FACTOR = 0.8  # of the trigram model's perplexity; docs/language.md tells it


@pytest.fixture(scope="module")
def tool():
    pytest.importorskip("jax")
    from tools import train_names

    return train_names


def test_names_have_vowels_of_one_kind():
    rng = random.Random(5)
    found = [name(rng) for _ in range(300)]
    assert len(set(found)) > 150
    for each in found:
        assert 3 <= len(each) <= LONGEST and {*each} <= {*CHARS}


def test_the_example_writes_names_of_the_grammar_and_others():
    rng, session = random.Random(1), weft.load(MODEL).open()
    known = {name(rng) for _ in range(10_000)}
    found = ["".join(session.generate("", 16, temperature=0.8, seed=n)) for n in range(25)]
    seen = sum(each in known for each in found)
    assert 8 <= seen < 25 and len(set(found)) > 18


@pytest.mark.slow
def test_training_lowers_the_loss_and_writes_a_file(tool, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tool, "NAMES", 500)
    monkeypatch.setattr(tool, "HELD_OUT", 20)
    assert tool.main(["--out", str(tmp_path), "--steps", "120"]) == 0
    said = capsys.readouterr().out
    assert float(said.split("loss ")[1].split(",")[0]) < 2.4 < np.log(27)
    assert weft.load(tmp_path / "names.npz").weights.shape == tool.SHAPE


@pytest.mark.slow
def test_held_out_names_are_known_better_than_by_trigrams(tool):
    names, held_out = tool.corpus()
    assert not {*names} & {*held_out}
    names, held_out = map(tool.encoded, (names, held_out))
    trigram = tool.trigram_perplexity(names, held_out, tool.SHAPE.vocab, tool.BOS)
    weights = weft.load(MODEL).weights
    found = tool.perplexity(IntegerModel(weights), 2.0**weights.logit_bits, held_out)
    assert found <= FACTOR * trigram
