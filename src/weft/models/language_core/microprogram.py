"""`MicroProgram`: a quantized microGPT as the instructions of a core with a microprogram."""

from dataclasses import dataclass

import numpy as np

from weft.golden.language import IntegerWeights
from weft.golden.language.integer_model import VALUE_BITS, Rows, embedded
from weft.golden.language.operations import exp_table, reciprocal_table
from weft.golden.language.sampling import GREEDY, Sampling
from weft.language_core.config import GROUP_BYTES, GROUPS_OF_WORD, LANES, LanguageCoreConfig
from weft.language_core.latencies import COIN_BITS
from weft.language_core.microcode import (
    DRAIN,
    NORMALISED,
    ROW_GROUPS,
    SUM,
    By,
    Coin,
    End,
    Idle,
    Instruction,
    Lane,
    Load,
    MicroReduction,
    Operation,
    Product,
    ResultPlace,
    Scalar,
    Setup,
    Shift,
    Table,
    ValueSource,
    cycles_of,
)
from weft.models.errors import require

__all__ = ["MicroProgram", "compile_microprogram"]

_ROW = 16  # channels of values that follow each other in the side memory
_MAX_DIM = ROW_GROUPS * LANES
_MAX_POSITIONS = 124  # steps of 4 * 31 bytes from a channel's keys to the next one's
_MAX_VOCAB = 512  # numbers of results


@dataclass(frozen=True, eq=False)
class MicroProgram:
    """What a host writes to a core with a microprogram, and what it executes for each token.

    Attributes
    ----------
    config : LanguageCoreConfig
    positions : int
        Tokens of the longest text.
    vocabulary : int
    instructions : list of Instruction
        Of a token, without its end; the first one is group 0. They find the most probable token.
    logits : int
        First place of the logits in the activation memory.
    main : bytes
        The main memory, from group 0 on.
    tables : int [1536, 2]
        Bases and slopes.
    words : dict
        Words of each kind of contents.
    caches : list
        Empty: keys and values are not in the main memory.
    program : bytes
        Empty: there is no program memory.
    """

    config: LanguageCoreConfig
    positions: int
    vocabulary: int
    instructions: list[Instruction]
    logits: int
    main: bytes
    tables: np.ndarray
    words: dict[str, int]
    caches: tuple = ()
    program: bytes = b""

    def list_of(self, how: Sampling) -> list[Instruction]:
        """The instructions of a token that chooses the next one by ``how``."""
        return [*self.instructions, *_end(how, self.logits, self.vocabulary)]

    def choice(self, how: Sampling) -> tuple[int, bytes]:
        """What a host writes before a start to choose tokens by ``how``: first group, and data."""
        return len(self.instructions), _packed(_end(how, self.logits, self.vocabulary))

    def token_cycles(
        self, how: Sampling, position: int, *, emits: bool = True, memory: None = None
    ) -> int:
        """Cycles of the token at a position, as `weft.language_core.cycles.token_cycles`.

        There is no program memory, so ``memory`` is None.
        """
        return cycles_of(self.list_of(how), emits=emits)


class _Assembler:
    """Appends instructions, each when what it needs is there."""

    def __init__(self):
        self.code: list[Instruction] = []
        self._time = 0
        self._free = 0  # the time at which all results are stored and reduced
        self._sums = 0  # the time at which a lane can take the sums
        self._normalised = 0  # the time at which a lane can take the argument of a table

    def add(self, instruction):
        self.code.append(instruction)
        self._time += instruction.CYCLES

    def idle_until(self, time):
        while self._time < time:
            self.add(Idle())

    def drain(self):
        self.idle_until(self._free)

    def setup(self, **fields):
        self.drain()
        self.add(Setup(**fields))

    def lane(self, **fields):
        self._free = self._time + DRAIN
        self.add(Lane(**fields))

    def values(self, first, count, multiplier=1):
        """Values of the activation memory for the lane."""
        for n in range(count):
            self.lane(value=first + n, source=ValueSource.VALUE, multiplier=multiplier)

    def products(self, products):
        """The products of a tile of four columns."""
        for each in products:
            self.add(each)
        self._sums = self._time - 1 + SUM

    def taken(self, multipliers):
        """Lanes for the sums of products that were added before."""
        self.idle_until(self._sums)
        for column, multiplier in enumerate(multipliers):
            self.lane(part=column, source=ValueSource.SUM, multiplier=int(multiplier))

    def scalar(self, **fields):
        self.drain()
        self._normalised = self._time + NORMALISED
        self.add(Scalar(**fields))

    def scale(self, table):
        """The scale of the last `scalar`, by a table."""
        self.setup(operation=Operation.TABLE, table=table, out_place=ResultPlace.SCALE)
        self.idle_until(self._normalised)
        self.lane()

    def matrix(self, rows: Rows, source: int, **setup):
        """The results of ``rows``, whose operand is at ``source``."""
        self.setup(shift=rows.shift, **setup)
        outputs, inputs = rows.weights.shape
        weights = np.zeros((-(-outputs // LANES) * LANES, inputs), int)
        weights[:outputs] = rows.weights
        for first in range(0, outputs, LANES):
            tile = weights[first : first + LANES].T
            self.products(
                Product(value=source + n, first=n == 0, weights=tuple(map(int, column)))
                for n, column in enumerate(tile)
            )
            self.taken(rows.multipliers[first : min(first + LANES, outputs)])


class _Layout:
    """Places of maps in the activation memory, and of the caches in the side memory."""

    def __init__(self, shape, positions):
        self.blocks = positions // LANES  # words of the keys of a channel
        self.rows = -(-shape.dim // _ROW)
        end = 0
        for name, size in (
            ("x", shape.dim), ("a", shape.dim), ("q", shape.dim), ("scores", positions),
            ("mean", shape.dim), ("h", shape.hidden), ("logits", shape.vocab),
        ):
            setattr(self, name, end)
            end += size
        self.values = end
        self.keys_of_layer = shape.dim * self.blocks
        self.layer_words = self.keys_of_layer + self.rows * positions * _ROW // LANES
        self.side_words = shape.layers * self.layer_words

    def key(self, layer, channel=0, block=0):
        """The word with the keys of a channel at four positions."""
        return layer * self.layer_words + channel * self.blocks + block

    def value(self, layer, channel=0, position=0):
        """The word with the values of four channels at a position."""
        row, rest = divmod(channel, _ROW)
        first = layer * self.layer_words + self.keys_of_layer
        return first + (row * self.blocks * LANES + position) * (_ROW // LANES) + rest // LANES


class _Token(_Assembler):
    """Makes the instructions of a token."""

    def __init__(self, weights: IntegerWeights, positions: int):
        super().__init__()
        self._weights, self._positions = weights, positions
        self.layout = _Layout(weights.shape, positions)

    def build(self, rows: dict[By, int]):
        """``rows`` has the first groups of both embeddings."""
        weights, at = self._weights, self.layout
        self._embedding(rows)
        self._norm(weights.embedding_norm, at.x, MicroReduction.SQUARES)
        for number, layer in enumerate(weights.layers):
            self._norm(layer.attention_norm, at.a)
            self._cache(number, layer)
            for head in range(weights.shape.heads):
                self._head(number, layer, head)
            self._add(layer.o, at.mean)
            self._norm(layer.ffn_norm, at.a)
            self.matrix(layer.w1, at.a, out=at.h, out_place=ResultPlace.ACTIVATIONS, relu=1)
            self._add(layer.w2, at.h)
        self.drain()
        self.add(End(within_prompt=1))
        self.matrix(
            weights.classifier, at.x, out=at.logits, out_place=ResultPlace.ACTIVATIONS,
            reduction=MicroReduction.MAXIMUM,
        )
        self.drain()
        return self.code

    def _embedding(self, rows):
        """The sum of both embeddings, and its squares."""
        for by in By:
            last = by == By.POSITION
            self.setup(
                out=self.layout.x, out_place=ResultPlace.ACTIVATIONS, residual=last,
                reduction=MicroReduction.SQUARES if last else MicroReduction.NONE,
            )
            for group in range(self._weights.shape.dim // LANES):
                self.add(Load(group=rows[by] + group, by=by))
                for part in range(LANES):
                    self.lane(part=part, source=ValueSource.LOADED, multiplier=1)

    def _norm(self, shift, out, reduction=MicroReduction.NONE):
        """The norm of the residual, whose squares were just summed."""
        self.scalar(root=1, addend=self._weights.epsilon)
        self.scale(Table.RSQRT)
        self.setup(
            out=out, out_place=ResultPlace.ACTIVATIONS, scaled=1, shift=shift, reduction=reduction
        )
        self.values(self.layout.x, self._weights.shape.dim)

    def _add(self, rows, source):
        """Add results to the residual, and sum its squares."""
        self.matrix(
            rows, source, out=self.layout.x, out_place=ResultPlace.ACTIVATIONS, residual=1,
            reduction=MicroReduction.SQUARES,
        )

    def _cache(self, number, layer):
        """Queries; and the keys and values of this position."""
        at = self.layout
        self.matrix(layer.q, at.a, out=at.q, out_place=ResultPlace.ACTIVATIONS)
        self.matrix(
            layer.k, at.a, out=LANES * at.key(number), step=LANES * at.blocks,
            moved=Shift.POSITION, out_place=ResultPlace.SIDE, narrow=1,
        )
        for first in range(0, self._weights.shape.dim, _ROW):
            part = slice(first, first + _ROW)
            rows = Rows(layer.v.weights[part], layer.v.multipliers[part], layer.v.shift)
            self.matrix(
                rows, at.a, out=LANES * at.value(number, first), moved=Shift.ROW,
                out_place=ResultPlace.SIDE, narrow=1,
            )

    def _head(self, number, layer, head):
        """The mean of the values of a head."""
        at, size, positions = self.layout, self._weights.shape.head_dim, self._positions
        first = head * size
        self.setup(
            out=at.scores, out_place=ResultPlace.ACTIVATIONS, shift=layer.score_shift,
            reduction=MicroReduction.MAXIMUM, masked=1,
        )
        for block in range(at.blocks):
            self.products(
                Product(
                    value=at.q + channel, first=channel == first, cached=1,
                    word=at.key(number, channel, block),
                ) for channel in range(first, first + size)
            )
            self.taken([1] * LANES)
        self.setup(
            operation=Operation.TABLE, table=Table.EXP, out=at.scores,
            out_place=ResultPlace.ACTIVATIONS, reduction=MicroReduction.TOTAL, masked=1,
        )
        self.values(at.scores, positions)
        self.scalar()
        tiles = [
            [
                Product(
                    value=at.scores + position, first=position == 0, cached=1,
                    word=at.value(number, channel, position),
                ) for position in range(positions)
            ] for channel in range(first, first + size, LANES)
        ]
        self.products(tiles[0])  # while the total is normalised
        self.scale(Table.RECIPROCAL)
        self.setup(
            out=at.mean + first, out_place=ResultPlace.ACTIVATIONS, scaled=1, shift=16 - VALUE_BITS
        )
        self.taken([0] * LANES)
        for tile in tiles[1:]:
            self.products(tile)
            self.taken([0] * LANES)


def _end(how, logits, vocabulary):
    """The instructions that choose the next token, after the classifier."""
    code = _Assembler()
    if how != GREEDY:
        code.setup(
            operation=Operation.DISTANCE, out=logits, out_place=ResultPlace.ACTIVATIONS,
            shift=how.shift, reduction=MicroReduction.MAXIMUM,
        )
        code.values(logits, vocabulary, how.multiplier)
        code.setup(
            operation=Operation.TABLE, table=Table.EXP, out=logits,
            out_place=ResultPlace.ACTIVATIONS, reduction=MicroReduction.TOTAL, least=how.least,
        )
        code.values(logits, vocabulary)
        code.drain()
        code.add(Coin())
        for _ in range(COIN_BITS + 1):
            code.add(Idle())
        code.setup(reduction=MicroReduction.PICK, least=how.least)
        code.values(logits, vocabulary)
        code.drain()
    code.add(End())
    return code.code


def _packed(instructions):
    return b"".join(each.pack().to_bytes(GROUP_BYTES, "little") for each in instructions)


def compile_microprogram(
    weights: IntegerWeights, config: LanguageCoreConfig, positions: int
) -> MicroProgram:
    """Make the instructions of a microGPT, and place its embeddings after them.

    Parameters and errors are those of `weft.models.language_core.program.compile_model`;
    ``positions`` is a multiple of 4.
    """
    _check(weights, positions)
    token = _Token(weights, positions)
    at = token.layout
    _check_space(positions, "groups", -(-at.values // LANES), config.groups)
    _check_space(positions, "side groups", at.side_words, config.side_groups)
    # The number of instructions does not depend on the places of the embeddings.
    length = len(token.build(dict.fromkeys(By, 0)))
    sampler = len(_end(Sampling(1, 1, 0), at.logits, weights.shape.vocab))
    tokens = -(-(length + sampler) // GROUPS_OF_WORD) * GROUPS_OF_WORD
    rows = {By.TOKEN: tokens, By.POSITION: tokens + ROW_GROUPS * weights.shape.vocab}
    embeddings = np.zeros((weights.shape.vocab + positions, _MAX_DIM), "<i2")
    maps = [
        embedded(part, np.arange(count)) for part, count in (
            (weights.embedding, weights.shape.vocab), (weights.position_embedding, positions),
        )
    ]
    embeddings[:, : weights.shape.dim] = np.concatenate(maps)
    words = {
        "instructions": tokens // GROUPS_OF_WORD,
        "embeddings": embeddings.nbytes // GROUP_BYTES // GROUPS_OF_WORD,
    }
    sizes = ", ".join(f"{name} {size}" for name, size in words.items())
    _check_space(positions, f"words ({sizes})", sum(words.values()), config.words)
    token = _Token(weights, positions)
    instructions = token.build(rows)
    start = _packed([*instructions, End()])
    main = start.ljust(tokens * GROUP_BYTES, b"\0") + embeddings.tobytes()
    tables = [
        np.stack([table.base, table.slope], -1)
        for table in (exp_table(), reciprocal_table(), weights.rsqrt)
    ]
    return MicroProgram(
        config, positions, weights.shape.vocab, instructions, at.logits, main,
        np.concatenate(tables), words,
    )


def _check_space(positions, name, needed, available):
    require(
        needed <= available,
        f"the model with {positions} positions needs {needed} {name}, but the core has"
        f" {available}; take fewer positions or a smaller model",
    )


def _check(weights, positions):
    """Raises ModelError for a model that the core cannot compute."""
    shape = weights.shape
    for name, value, most in (
        ("dim", shape.dim, _MAX_DIM), ("head_dim", shape.head_dim, _MAX_DIM),
        ("positions", positions, min(_MAX_POSITIONS, shape.positions)),
    ):
        require(
            value % LANES == 0 and LANES <= value <= most,
            f"{name} must be a multiple of {LANES} in {LANES}..{most}, not {value}",
        )
    require(
        shape.vocab <= _MAX_VOCAB, f"vocab must be in 1..{_MAX_VOCAB}, not {shape.vocab}"
    )
    require(shape.kv_heads == shape.heads, "each head must have keys of its own")
    require(weights.epsilon < 1 << 32, "epsilon must be in 1..2**32 - 1")
    rows = [weights.classifier]
    for layer in weights.layers:
        rows += [layer.q, layer.k, layer.v, layer.o, layer.w1, layer.w2]
    require(
        all(part.multipliers.min() >= 0 for part in rows),
        "the multipliers of rows must be at least 0",
    )
