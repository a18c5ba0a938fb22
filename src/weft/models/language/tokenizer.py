"""Text to tokens, and tokens to text as they come."""

import codecs
import dataclasses
import functools
import heapq
from typing import Protocol

import numpy as np

from weft.models.errors import ModelError, require

__all__ = ["JsonTokenizer", "PieceTokenizer", "TextStream", "Tokenizer"]

_MAX_TEXT = 1 << 20  # characters of a prompt


class TextStream(Protocol):
    """Makes text of tokens, one by one."""

    def push(self, token: int) -> str:
        """Return the text that a token completes: whole characters only."""

    def end(self) -> str:
        """Return what is left at the end of the tokens."""


class Tokenizer(Protocol):
    """What a language model needs of its tokenizer.

    Attributes
    ----------
    bos : int
        The token that starts each text.
    stops : tuple of int
        The tokens that end a text.
    """

    bos: int
    stops: tuple[int, ...]

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, the first one is ``bos``."""

    def stream(self) -> TextStream:
        """Return what makes text of the tokens that follow ``bos``."""

    def check(self, vocab: int) -> None:
        """Raise ModelError unless the tokens are those of a model with ``vocab`` tokens."""


def _check_token(token, vocab):
    require(
        0 <= token < vocab, f"a token of the tokenizer must be in 0..{vocab - 1}, not {token}"
    )


def _check_length(text):
    require(
        len(text) <= _MAX_TEXT,
        f"a text must have at most {_MAX_TEXT:,} characters, not {len(text):,}",
    )


@dataclasses.dataclass(frozen=True)
class PieceTokenizer:
    """Byte pair encoding by scores, as SentencePiece and llama2.c compute it.

    A text starts with a space. Its characters that are pieces become tokens, all others become the
    tokens of their bytes. Then the neighbours whose joined piece has the largest score become one
    token, the first of equal ones, until no neighbours are a piece.

    Attributes
    ----------
    pieces : tuple of bytes
        UTF-8. A piece ``<0x41>`` is the byte 65.
    scores : float32 [vocab]
    bos : int
    stops : tuple of int
    prefix_space : bool
        Whether a text starts with a space that it does not have.
    """

    pieces: tuple[bytes, ...]
    scores: np.ndarray
    bos: int
    stops: tuple[int, ...]
    prefix_space: bool = True

    def check(self, vocab: int) -> None:
        """Raise ModelError unless there is a piece and a score for each of ``vocab`` tokens."""
        found = len(self.pieces)
        require(found == vocab, f"the tokenizer must have {vocab:,} tokens, not {found:,}")
        require(
            self.scores.dtype == np.float32 and self.scores.shape == (vocab,)
            and bool(np.isfinite(self.scores).all()),
            "the tokenizer must have a score for each token: a float32 number",
        )
        for token in (self.bos, *self.stops):
            _check_token(token, vocab)

    @functools.cached_property
    def _tokens(self):
        tokens: dict[bytes, int] = {}
        for token, piece in enumerate(self.pieces):
            tokens.setdefault(piece, token)
        return tokens

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; ModelError for a character that has none."""
        _check_length(text)
        symbols: list[int] = []
        for character in " " + text if text and self.prefix_space else text:
            symbols += self._of_character(character)
        return [self.bos, *self._joined(symbols)]

    def _of_character(self, character):
        try:
            data = character.encode()
        except UnicodeEncodeError as error:
            raise ModelError(f"a text must be Unicode, not {character!r}") from error
        if data in self._tokens:
            return [self._tokens[data]]
        names = [b"<0x%02X>" % byte for byte in data]
        if not all(name in self._tokens for name in names):
            raise ModelError(f"the tokenizer must have a token for {character!r}, or for its bytes")
        return [self._tokens[name] for name in names]

    def _joined(self, symbols):
        """Join neighbours, the best first. A joined symbol has the place of its left part."""
        end = len(symbols)
        after, before = list(range(1, end + 1)), list(range(-1, end - 1))
        alive, queue = [True] * end, []

        def offer(left):
            right = after[left]
            if left < 0 or right >= end:
                return
            joined = self._tokens.get(self.pieces[symbols[left]] + self.pieces[symbols[right]])
            if joined is not None:
                entry = (-float(self.scores[joined]), left, right, joined)
                heapq.heappush(queue, (*entry, symbols[left], symbols[right]))

        for place in range(end - 1):
            offer(place)
        while queue:
            _, left, right, joined, *parts = heapq.heappop(queue)
            changed = [symbols[left], symbols[right]] != parts or after[left] != right
            if not (alive[left] and alive[right]) or changed:
                continue
            symbols[left], alive[right] = joined, False
            after[left] = after[right]
            if after[left] < end:
                before[after[left]] = left
            offer(left)
            if before[left] >= 0:
                offer(before[left])
        return [symbol for symbol, lives in zip(symbols, alive, strict=True) if lives]

    def stream(self) -> TextStream:
        """Return what makes text of tokens; a character waits for its last byte."""
        return _PieceStream(self)


class _PieceStream:
    """`TextStream` of pieces."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._first = tokenizer.prefix_space

    def push(self, token: int) -> str:
        """Return the text that a token completes."""
        if token == self._tokenizer.bos:
            self._first = self._tokenizer.prefix_space
            return ""
        piece = self._tokenizer.pieces[token]
        if self._first and piece.startswith(b" "):
            piece = piece[1:]
        self._first = False
        return self._decoder.decode(_byte(piece) or piece)

    def end(self) -> str:
        """Return a mark for an unfinished character, if there is one."""
        return self._decoder.decode(b"", True)


def _byte(piece):
    """The byte of a piece ``<0x41>``, or nothing."""
    if len(piece) == 6 and piece.startswith(b"<0x") and piece.endswith(b">"):
        try:
            return bytes.fromhex(piece[3:5].decode())
        except ValueError:
            pass
    return b""


@dataclasses.dataclass(frozen=True)
class JsonTokenizer:
    """A ``tokenizer.json`` of Hugging Face, run by the package `tokenizers`.

    Attributes
    ----------
    json : bytes
        The file.
    bos : int
    stops : tuple of int
    """

    json: bytes
    bos: int
    stops: tuple[int, ...]

    def check(self, vocab: int) -> None:
        """Raise ModelError unless all tokens are below ``vocab``."""
        largest = max(self._tokenizer.get_vocab().values(), default=-1)
        for token in (largest, self.bos, *self.stops):
            _check_token(token, vocab)

    @functools.cached_property
    def _tokenizer(self):
        import tokenizers

        try:
            return tokenizers.Tokenizer.from_buffer(self.json)
        except Exception as error:  # the package raises nothing narrower
            raise ModelError(f"tokenizer.json is damaged: {str(error)[:100]}") from error

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, after ``bos``."""
        _check_length(text)
        return [self.bos, *self._tokenizer.encode(text, add_special_tokens=False).ids]

    def stream(self) -> TextStream:
        """Return what makes text of tokens."""
        return _JsonStream(self._tokenizer)


class _JsonStream:
    """`TextStream` of a tokenizer whose decoder needs all tokens."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._tokens: list[int] = []
        self._shown = ""

    def push(self, token: int) -> str:
        """Return the text that a token completes; an unfinished character waits."""
        self._tokens.append(token)
        text = self._tokenizer.decode(self._tokens)
        return "" if text.endswith("\N{REPLACEMENT CHARACTER}") else self._new(text)

    def end(self) -> str:
        """Return the rest of the text."""
        return self._new(self._tokenizer.decode(self._tokens))

    def _new(self, text):
        new = text[len(self._shown):]
        self._shown = text
        return new
