"""A compiled language model, and the session that writes text with it."""

import dataclasses
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from weft.golden.language import IntegerModel, IntegerWeights
from weft.golden.language.operations import Table
from weft.golden.language.sampling import Sampling, sample, sampling, start_state
from weft.models.errors import ModelError, require
from weft.models.language.quantization import check_bounds
from weft.models.language.tokenizer import JsonTokenizer, PieceTokenizer
from weft.models.program_file import write_language_program

__all__ = ["GoldenWriter", "LanguageProgram", "LanguageSession", "Writer", "until"]


@dataclasses.dataclass(frozen=True)
class LanguageProgram:
    """A language model in integers, with its tokenizer.

    Attributes
    ----------
    name : str
    source : str
        The kind of file that it came from.
    weights : IntegerWeights
    tokenizer : PieceTokenizer or JsonTokenizer
    file_positions : int
        The positions that this file told; the program has at most 512.
    """

    name: str
    source: str
    weights: IntegerWeights
    tokenizer: PieceTokenizer | JsonTokenizer
    file_positions: int

    def save(self, path) -> None:
        """Write the program to a file; `weft.load` reads it."""
        write_language_program(self, path)

    def open(self, writer: "Writer | None" = None) -> "LanguageSession":
        """Return a session on ``writer``; without one, on the golden model.

        A `weft.models.language_core.board_writer.BoardWriter` writes with the core of a board.
        """
        return LanguageSession(self, writer or GoldenWriter(self.weights))

    def check(self) -> None:
        """Raise ModelError unless all arrays have the sizes, types and ranges of the shape."""
        weights, shape = self.weights, self.weights.shape
        dim, kv, hidden = shape.dim, shape.kv_dim, shape.hidden
        _check_rows("embedding", weights.embedding, shape.vocab, dim)
        _check_rows("classifier", weights.classifier, shape.vocab, dim)
        _check_absent("the model", weights, shape, _LLAMA, _MICROGPT)
        if shape.is_llama:
            for name in ("cos", "sin"):
                size = (shape.positions, shape.head_dim // 2)
                _check_array(name, getattr(weights, name), np.int16, size)
            _check_array("final gain", weights.final_gain.multipliers, np.int16, (dim,))
        else:
            _check_rows("position embedding", weights.position_embedding, shape.positions, dim)
        _check_table("rsqrt", weights.rsqrt, 0)
        require(
            len(weights.layers) == shape.layers,
            f"layers must be {shape.layers}, not {len(weights.layers)}",
        )
        sizes = {
            "q": (dim, dim), "k": (kv, dim), "v": (kv, dim), "o": (dim, dim),
            "w1": (hidden, dim), "w2": (dim, hidden),
        } | ({"w3": (hidden, dim)} if shape.is_llama else {})
        for number, layer in enumerate(weights.layers):
            where = f"of layer {number}"
            _check_absent(f"layer {number}", layer, shape, _LLAMA_LAYER, ())
            for name, size in sizes.items():
                _check_rows(f"{name} {where}", getattr(layer, name), *size)
            if not shape.is_llama:
                continue
            _check_array(f"K {where}", layer.k_cache.multipliers, np.int16, (kv,))
            _check_array(f"q {where}", layer.q_scores.multipliers, np.int16, (dim,))
            _check_table(f"silu {where}", layer.silu, -32768)
        require(1 <= weights.epsilon < 1 << 46, "epsilon must be in 1..2**46 - 1")
        require(0 <= weights.logit_bits <= 15, "logit_bits must be in 0..15")
        check_bounds(weights)
        self.tokenizer.check(shape.vocab)


# What only one of the architectures has: parts of the model, and of a layer.
_LLAMA, _MICROGPT = ("cos", "sin", "final_norm", "final_gain"), (
    "position_embedding", "embedding_norm",
)
_LLAMA_LAYER = "k_cache", "q_scores", "w3", "silu", "gate_shift"


def _check_absent(where, owner, shape, llama, microgpt):
    """Raise ModelError unless there is what the architecture has, and nothing else."""
    for names, wanted in ((llama, shape.is_llama), (microgpt, not shape.is_llama)):
        for name in names:
            require(
                (getattr(owner, name) is not None) == wanted,
                f"{where} must have {'a' if wanted else 'no'} {name}: it is a {shape.architecture}",
            )


def _check_array(name, array, dtype, size):
    if array.dtype != dtype or array.shape != size:
        raise ModelError(
            f"{name} must be {np.dtype(dtype).name} {list(size)}, not {array.dtype.name}"
            f" {list(array.shape)}"
        )


def _check_rows(name, rows, outputs, inputs):
    _check_array(name, rows.weights, np.int8, (outputs, inputs))
    _check_array(f"the multipliers of {name}", rows.multipliers, np.int16, (outputs,))


def _check_table(name, table: Table, low):
    _check_array(f"the table {name}", table.base, np.int32, (512,))
    _check_array(f"the slopes of {name}", table.slope, np.int16, (512,))
    ends = table.base + table.slope
    high = 65535 if low == 0 else 32767
    for values in (table.base, ends):
        require(
            bool((values >= low).all() and (values <= high).all()),
            f"the table {name} must have values in {low}..{high}",
        )


class Writer(Protocol):
    """What computes the tokens of a session.

    Attributes
    ----------
    positions : int
        Tokens of the longest text.
    position : int
        The next one.
    """

    positions: int
    position: int

    def check(self, how: Sampling) -> None:
        """Raise ModelError for a choice of tokens that it cannot make."""

    def start(self) -> None:
        """Begin a text, at position 0."""

    def write(self, tokens: list[int], how: Sampling, state: int) -> tuple[int, int]:
        """Return the token that follows further tokens of the text, and the next random state."""


class GoldenWriter:
    """A `Writer`: the golden model.

    Parameters
    ----------
    weights : IntegerWeights
    """

    def __init__(self, weights: IntegerWeights):
        self.positions = weights.shape.positions
        self._model = IntegerModel(weights)

    @property
    def position(self) -> int:
        return self._model.position

    def check(self, how: Sampling) -> None:
        """It makes each choice."""

    def start(self) -> None:
        self._model.start(1)

    def write(self, tokens: list[int], how: Sampling, state: int) -> tuple[int, int]:
        return sample(self._model.step(np.array([tokens]))[0, -1], how, state)


class LanguageSession:
    """Writes text: ``for text in session.generate("Once upon a time"): ...``

    Parameters
    ----------
    program : LanguageProgram
    writer : Writer

    Attributes
    ----------
    tokens : list of int
        Of the last text: the prompt, and what followed; without a token that ended it.
    prompt_tokens : int
        How many of them are the prompt.
    ended : str
        Why the last text ended: ``tokens`` (as many as wanted), ``stop token``, ``stop text``, or
        ``cache`` (no position is left).
    """

    def __init__(self, program: LanguageProgram, writer: Writer):
        self.program = program
        self.writer = writer
        self.tokens: list[int] = []
        self.prompt_tokens = 0
        self.ended = ""

    def generate(
        self, prompt: str = "", tokens: int = 200, *, temperature: float = 0.0,
        min_p: float = 0.0, seed: int = 1, stop: str = "",
    ) -> Iterator[str]:
        """Yield the text that follows a prompt, in pieces as they come.

        A character whose bytes come in several tokens is held back until its last byte. Equal
        arguments give equal texts.

        Parameters
        ----------
        prompt : str
        tokens : int
            The largest number of tokens that follow the prompt, 1 or more.
        temperature, min_p : float
            As for `weft.golden.language.sampling.sampling`; temperature 0 takes the most probable
            token.
        seed : int
            Of the random numbers.
        stop : str
            Ends the text where this text comes; it is not part of the text. Empty: never.

        Raises
        ------
        ModelError
            At once, for an argument outside its range, or a prompt with too many tokens.
        """
        positions = self.writer.positions
        require(tokens >= 1, f"tokens must be 1 or more, not {tokens}")
        try:
            how = sampling(temperature, min_p, self.program.weights.logit_bits)
        except ValueError as error:
            raise ModelError(str(error)) from error
        self.writer.check(how)
        start = self.program.tokenizer.encode(prompt)
        require(
            len(start) < positions,
            f"the prompt must have at most {positions - 1} tokens, so that one can follow, not"
            f" {len(start):,}",
        )
        state = start_state(seed)
        return until(stop, self._pieces(start, tokens, how, state), self)

    def _pieces(self, start, count, how, state):
        """Yield the text of each token."""
        tokenizer, writer = self.program.tokenizer, self.writer
        self.tokens, self.prompt_tokens, self.ended = list(start), len(start), ""
        text = tokenizer.stream()
        for token in start[1:]:
            text.push(token)
        writer.start()
        new = start
        for _ in range(count):
            if writer.position + len(new) > writer.positions:
                self.ended = "cache"
                break
            token, state = writer.write(new, how, state)
            if token in tokenizer.stops:
                self.ended = "stop token"
                break
            self.tokens.append(token)
            new = [token]
            yield text.push(token)
        self.ended = self.ended or "tokens"
        yield text.end()


def until(stop, pieces, session):
    """Yield the text of ``pieces`` before ``stop``; what may be its beginning waits."""
    waiting = ""
    for piece in pieces:
        waiting += piece
        place = waiting.find(stop) if stop else -1
        if place >= 0:
            session.ended = "stop text"
            if waiting[:place]:
                yield waiting[:place]
            return
        held = next(
            (n for n in range(min(len(stop) - 1, len(waiting)), 0, -1)
             if stop.startswith(waiting[-n:])), 0,
        )
        done, waiting = waiting[:len(waiting) - held], waiting[len(waiting) - held:]
        if done:
            yield done
    if waiting:
        yield waiting
