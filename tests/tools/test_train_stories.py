"""The language model of the examples: its stories, its tokenizer, and how well it knows them."""

import random
from pathlib import Path

import numpy as np
import pytest
from tiers import quick

import weft
from tools.llama2c_writer import model_file, tokenizer_file
from tools.story_grammar import story
from weft.golden.language import IntegerModel, Shape

ROOT = Path(__file__).resolve().parent.parent.parent
MODEL = ROOT / "examples" / "stories.weft"
FACTOR = 0.7  # of the trigram model's perplexity; docs/language.md tells it


@pytest.fixture(scope="module")
def tool():
    pytest.importorskip("jax")
    from tools import train_stories

    return train_stories


def test_stories_are_sentences_about_one_hero():
    rng = random.Random(5)
    for _ in range(200):
        text = story(rng)
        assert "{" not in text and text[0].isupper() and text[-1] in '.!"'
        names = {word.strip('.,!?"') for word in text.split()} & set(
            "Ben Tom Max Leo Sam Tim Mia Lily Anna Sue Emma Zoe".split()
        )
        assert len(names) == 1


def test_a_tokenizer_joins_the_most_frequent_pairs(tool):
    tokenizer = tool.tokenizer_of(["aa ab aa aa", "ab"], 100)
    assert tokenizer.pieces[98:] == (b" a", b" aa")
    assert tokenizer.encode("aa ab")[1:] == [99, 98, tokenizer.pieces.index(b"b")]


def test_words_are_encoded_as_whole_texts_are(tool):
    texts = [story(random.Random(seed)) for seed in range(20)]
    tokenizer = tool.tokenizer_of(texts, 300)
    assert tool.encoded(tokenizer, texts) == [tokenizer.encode(text) for text in texts]
    stream = tokenizer.stream()
    tokens = tokenizer.encode(texts[3])
    assert "".join(map(stream.push, tokens)) + stream.end() == texts[3]


def test_the_trigram_model_interpolates(tool):
    """By hand: with one text ``1 5 5``, vocab 10."""
    unigram = (2 + 1 / 10) / 3                   # two of two tokens are 5, one kind
    bigram_1, bigram_5 = (1 + unigram) / 2, (1 + unigram) / 2
    trigram = [(1 + bigram_1) / 2, (1 + bigram_5) / 2]
    expected = 1 / np.sqrt(trigram[0] * trigram[1])
    assert tool.trigram_perplexity([[1, 5, 5]], [[1, 5, 5]], 10) == pytest.approx(expected)


@pytest.mark.slow
def test_training_lowers_the_loss_and_gives_float_weights(tool, monkeypatch, capsys):
    shape = Shape(dim=16, layers=1, heads=2, kv_heads=1, hidden=24, vocab=140, positions=256)
    monkeypatch.setattr(tool, "SHAPE", shape)
    monkeypatch.setattr(tool, "WARM_UP", 5)
    texts = [story(random.Random(seed)) for seed in range(200)]
    tokenizer = tool.tokenizer_of(texts, shape.vocab)
    weights = tool.train(tool.encoded(tokenizer, texts), 50)
    losses = [line.split()[5] for line in capsys.readouterr().out.splitlines()]
    assert float(losses[-1].strip(",")) < 4.5 < np.log(140)
    assert len(model_file(weights)) > 4 * shape.parameters
    assert tokenizer_file(tokenizer)


@pytest.fixture(scope="module")
def program():
    return weft.load(MODEL)


@pytest.mark.parametrize(
    "prompt", quick(1, ["", "One day, a girl named Mia", "Tom had a nice red ball."])
)
def test_greedy_text_ends_and_does_not_loop(program, prompt):
    session = program.open()
    text = prompt + "".join(session.generate(prompt, 250))
    assert session.ended == "stop token"
    words = text.split()
    assert len(words) > 40
    runs = [tuple(words[i:i + 10]) for i in range(len(words) - 9)]
    assert len(set(runs)) == len(runs)


@pytest.mark.slow
def test_sampled_texts_are_different_stories(program):
    session = program.open()
    texts = {"".join(session.generate("", 60, temperature=1.0, seed=seed)) for seed in range(3)}
    assert len(texts) == 3


@pytest.mark.slow
def test_held_out_stories_are_known_better_than_by_trigrams(tool, program):
    texts, held_out = tool.corpus()
    assert not {*texts} & {*held_out}
    tokens, held = (tool.encoded(program.tokenizer, part) for part in (texts, held_out))
    trigram = tool.trigram_perplexity(tokens, held, program.weights.shape.vocab)
    model, total, count = IntegerModel(program.weights), 0.0, 0
    for text in held:
        model.start(1)
        logits = model.step(np.array([text[:-1]]))[0] / 2.0**program.weights.logit_bits
        log_sum = np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1)) + logits.max(-1)
        total += (log_sum - logits[np.arange(len(text) - 1), text[1:]]).sum()
        count += len(text) - 1
    assert np.exp(total / count) <= FACTOR * trigram
