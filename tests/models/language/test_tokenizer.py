"""Tokens of texts, and texts of tokens."""

import dataclasses
import os
import random
from pathlib import Path

import numpy as np
import pytest
from language_models import pieces

from weft.models.errors import ModelError
from weft.models.language.llama2c import read_tokenizer
from weft.models.language.tokenizer import JsonTokenizer


def merged_slowly(tokenizer, text):
    """The loop of llama2.c: the best pair of all, the first of equal ones, again and again."""
    ids = {}
    for token, piece in enumerate(tokenizer.pieces):
        ids.setdefault(piece, token)
    symbols = []
    for character in (" " + text if text else ""):
        data = character.encode()
        symbols += [ids[data]] if data in ids else [byte + 3 for byte in data]
    while True:
        best, place = -1e10, -1
        for i in range(len(symbols) - 1):
            token = ids.get(tokenizer.pieces[symbols[i]] + tokenizer.pieces[symbols[i + 1]])
            if token is not None and tokenizer.scores[token] > best:
                best, place, joined = tokenizer.scores[token], i, token
        if place < 0:
            return [1, *symbols]
        symbols[place:place + 2] = [joined]


TEXTS = [
    "", "the", "the ants and the hat was an owl...", "  two  spaces", "döner 狗\n\t!", "aaannn",
]


def test_encode_merges_as_llama2c():
    tokenizer, rng = pieces(), random.Random(1)
    texts = [*TEXTS, *("".join(rng.choices(" theandosw.ö", k=40)) for _ in range(100))]
    for text in texts:
        assert tokenizer.encode(text) == merged_slowly(tokenizer, text)
    equal = dataclasses.replace(tokenizer, scores=np.zeros(300, np.float32))
    for text in texts:
        assert equal.encode(text) == merged_slowly(equal, text)


def test_a_long_text_takes_no_quadratic_time():
    assert len(pieces().encode("the ants and " * 4000)) > 4000


@pytest.mark.parametrize("text", TEXTS)
def test_the_stream_gives_the_text_back(text):
    tokenizer = pieces()
    stream = tokenizer.stream()
    parts = [stream.push(token) for token in tokenizer.encode(text)]
    assert "".join(parts) + stream.end() == text


def test_a_character_waits_for_its_last_byte():
    stream = pieces().stream()
    dog = [byte + 3 for byte in "狗".encode()]
    assert [stream.push(token) for token in (1, *dog)] == ["", "", "", "狗"]
    assert [stream.push(token) for token in dog[:2]] == ["", ""]
    assert stream.end() == "\N{REPLACEMENT CHARACTER}"


def test_a_character_without_token_is_named():
    tokenizer = pieces()
    plain = dataclasses.replace(
        tokenizer, pieces=(*tokenizer.pieces[:3], *(b"-" for _ in range(256)),
                           *tokenizer.pieces[259:]),
    )
    assert plain.encode("the")
    with pytest.raises(ModelError, match="must have a token for '狗', or for its bytes"):
        plain.encode("a 狗")
    with pytest.raises(ModelError, match="a text must be Unicode"):
        tokenizer.encode("\ud800")
    with pytest.raises(ModelError, match="at most 1,048,576 characters, not 1,048,577"):
        tokenizer.encode("a" * (1 << 20 | 1))


@pytest.mark.parametrize("change, text", [
    ({"pieces": (b"a",)}, "must have 300 tokens, not 1"),
    ({"scores": np.zeros(299, np.float32)}, "must have a score for each token"),
    ({"scores": np.full(300, np.nan, np.float32)}, "a score for each token: a float32"),
    ({"bos": 300}, "must be in 0..299, not 300"),
    ({"stops": (2, -1)}, "must be in 0..299, not -1"),
])
def test_a_wrong_tokenizer_is_refused(change, text):
    with pytest.raises(ModelError, match=text):
        dataclasses.replace(pieces(), **change).check(300)


def test_tok512_gives_the_tokens_of_llama2c():
    if "WEFT_NETWORKS" not in os.environ:
        pytest.skip("WEFT_NETWORKS must name a folder with tok512.bin of llama2.c")
    tokenizer = read_tokenizer(Path(os.environ["WEFT_NETWORKS"]) / "tok512.bin", 512)
    for text in (*TEXTS, "Once upon a time, there was a little girl named Lily."):
        assert tokenizer.encode(text) == merged_slowly(tokenizer, text)
    assert tokenizer.pieces[3] == b"<0x00>" and tokenizer.pieces[258] == b"<0xFF>"


def test_a_json_tokenizer_streams_whole_characters():
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.Tokenizer(tokenizers.models.BPE(
        {"<s>": 0, **{c: i + 1 for i, c in enumerate(
            sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
        )}}, [],
    ))
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = JsonTokenizer(model.to_str().encode(), 0, (0,))
    tokenizer.check(257)
    first, *tokens = tokenizer.encode("a 狗!")
    assert first == 0 and len(tokens) == 6
    stream = tokenizer.stream()
    assert [stream.push(token) for token in tokens] == ["a", " ", "", "", "狗", "!"]
    stream = tokenizer.stream()
    for token in tokens[:3]:
        stream.push(token)
    assert stream.end() == "\N{REPLACEMENT CHARACTER}"
    with pytest.raises(ModelError, match="must be in 0..255, not 256"):
        tokenizer.check(256)
    with pytest.raises(ModelError, match="tokenizer.json is damaged"):
        JsonTokenizer(b"{", 0, (0,)).check(5)
