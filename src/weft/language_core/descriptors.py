"""The descriptors of a language core: each is one pass over products, values or scalars.

A descriptor is the first 64 bytes of a word of the main memory. Its fields follow each other from
bit 0 on, in the order of the attributes of `Pass`; the other bits are 0. Addresses of the main
memory and of the program memory are words. Addresses of the activation memory and of parameters are
groups of four int16, 8 bytes: a word has 16 of them.
"""

import dataclasses
from dataclasses import dataclass, field
from enum import IntEnum

from weft.language_core.config import CODE_BEATS, PROGRAM_BITS, SCALED_WORDS

__all__ = [
    "DESCRIPTOR_BITS", "DESCRIPTOR_BYTES", "LEVELS", "Blocks", "CoreError", "Factor", "Kind",
    "Operand", "OutPlace", "ParameterPlace", "Pass", "Reduction", "Source", "TOTAL_BITS",
    "Transfer", "field_shapes", "packed_beats",
]

DESCRIPTOR_BYTES = 64
DESCRIPTOR_BITS = 8 * DESCRIPTOR_BYTES
LEVELS = 5  # of the nested loops over steps
TOTAL_BITS = 29  # of a total: 4,096 groups of four exponentials, which are at most 32,767


class Kind(IntEnum):
    """What a pass computes from."""

    PRODUCT = 1  # sums of the array
    VECTOR = 2  # values of the activation memory, or an embedding row
    SCALAR = 3  # the scales of heads or of a whole vector; a coin; or words that only move


class Blocks(IntEnum):
    """The number of iterations of a loop."""

    FIXED = 0  # the field of the loop
    EIGHTHS = 1  # position // 8 + 1
    SIXTEENTHS = 2  # position // 16 + 1


class ParameterPlace(IntEnum):
    """What is added to the first parameter group."""

    FIXED = 0  # nothing
    POSITION = 1  # the position
    ROW = 2  # token // 8 * 16 + token % 8 * 2: the row of an embedding among eight in a word; of
    # words that were loaded, `Transfer.LOAD`, token % 8 * 2
    TOKEN = 3  # token // 4: its scale


class OutPlace(IntEnum):
    """Where results go; keys and values go to the main memory, as int8."""

    ACTIVATIONS = 0  # the group
    BOTH = 1  # the group of the activation memory and the one of the side memory
    KEYS = 2  # word + position // 8, column position % 8, four bytes from 4 * (group % 4) on
    VALUES = 3  # word + position // 16, byte position % 16 of columns 4 * (group % 2) to + 3


class Operand(IntEnum):
    """What a lane multiplies."""

    VALUE = 0  # a sum of the array, or a value
    EXP = 1  # exp(value - the head's maximum), by the first table
    SILU = 2  # the value of the second table
    BYTE = 3  # a byte of the parameter group: an embedding
    PAIR = 4  # two neighbours, rotated
    DISTANCE = 5  # the head's maximum - value


class Factor(IntEnum):
    """The factor of a lane; `Operand.PAIR` has cosine and sine from parameters."""

    ONE = 0
    PARAMETER = 1  # of the lane, int16
    SCALE = 2  # of the head; its exponent is added to ``shift``
    SIDE = 3  # a value of the side memory


class Reduction(IntEnum):
    """What a pass computes of its results, besides storing them."""

    NONE = 0
    MAXIMUM = 1  # of each head, over the positions up to the current one
    TOTAL = 2  # of each head; exponentials of later positions are 0
    SQUARES = 3  # the sum of the squares of all results
    BEST = 4  # the maximum of each head; and the first of the largest results, the next token
    PICK = 5  # the first result whose running sum exceeds the mark: the next token


class Source(IntEnum):
    """What a scalar pass computes a scale of."""

    RECIPROCAL = 0  # of the total of each head
    ROOT = 1  # the reciprocal root of squares + addend
    PARAMETER = 2  # the parameter itself, with exponent 0
    COIN = 3  # no scale but the mark of `Reduction.PICK`: a random part of the latest total


class Transfer(IntEnum):
    """What a pass moves between the program memory and the main memory."""

    NONE = 0
    STREAM = 1  # each step of a product takes the next word, by a ring of words at ``main``
    LOAD = 2  # of a scalar pass: words go to the main memory; of other passes: see `ParameterPlace`
    STORE = 3  # of a scalar pass: words of the main memory go to the program memory


class CoreError(IntEnum):
    """Why a core stopped."""

    NONE = 0
    KIND = 1  # a descriptor has an unknown kind
    ABORTED = 2
    MEMORY = 3  # the program memory answered with an error, or not in time


def _bits(bits, *, default=0, signed=False):
    return field(default=default, metadata={"bits": bits, "signed": signed})


def _of_transfers(bits, of="transfers"):
    return field(default=0, metadata={"bits": bits, "signed": False, "of": of})


_COUNT, _WORD, _GROUP, _PARAMETER = 12, 12, 12, 16


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One pass. The loops of its steps are nested; loop 0 is the innermost.

    A step of a product reads a word of the main memory at ``main`` and a vector (four groups) at
    ``operand``. A step of other passes reads a group at ``operand``. When loop n advances, the
    addresses of its last start move by the steps n. A tile is the loop 0 of a product: it ends
    with eight sums, two groups. A group is a step of loop 0 of other passes. Loop 1 repeats it,
    and the loops above together have ``heads`` iterations.

    Attributes
    ----------
    kind : Kind
    last : bool
        The list of a token ends after this pass.
    emitting : bool
        The pass is left out while more of the prompt follows.
    count_0, ... : int
        Iterations of loop n, at least 1.
    blocks_0, blocks_1 : Blocks
        Whether the position determines the iterations of loop 0 or 1.
    main, main_0, ... : int
        First word, and steps.
    operand, operand_0, ... : int
        First group, and steps.
    halved : bool
        Only half of a vector is used: products 0 to 7 in iterations of loop 2 with an even
        number, products 8 to 15 in the others.
    heads : int
        Iterations of the loops above loop 1; 1 for a pass without heads. Only 16 heads have a
        maximum, a total and a scale of their own.
    parameter, parameter_0, parameter_1, parameter_2 : int
        First parameter group, and steps of a group, of loop 1, and of a head.
    parameter_place : ParameterPlace
    out, out_0, out_1, out_2 : int
        First group or word of the results; steps of a group, of loop 1, and of a head.
    out_place : OutPlace
    side : int
        First group of the side memory; the step is 1.
    lane_operand : Operand
    factor : Factor
    residual : bool
        A value of the side memory is added.
    shift : int
        ``(operand * factor + 2^(shift - 1)) >> shift``; 0 to 47 with the exponent of a scale,
        and 0 shifts and rounds nothing.
    reduction : Reduction
    unmasked : bool
        Results are of tokens, not of positions: none is left out for being later.
    source : Source
    addend : int
        Of `Source.ROOT`. Of `Reduction.TOTAL` and `Reduction.PICK`, in its lowest 15 bits:
        results below it count as 0.
    follow : int
        Cycles from the last step of this pass to the first step of the one that follows, at least
        FOLLOW; or 0, if that one waits for the last result. Only between two passes with steps: see
        `weft.models.language_core.overlap`.
    transfer : Transfer
        Only of a core with a program memory, as ``program``. A `Transfer.LOAD` or a
        `Transfer.STORE` moves a word in each iteration of the loops 0 and 1. Its address in the
        main memory is ``main``, and ``main_0`` and ``main_1`` move both addresses. With
        `OutPlace.KEYS`, both start ``position // 8`` words later, with `OutPlace.VALUES`
        ``position // 16``. The words of a `Transfer.STREAM` follow each other.
    program : int
        First word of the program memory. With `ParameterPlace.ROW`, a transfer starts
        ``token // 8 * count_0`` words later.
    packed : int
        Only of a core with int4. Of a `Transfer.STREAM`, or a `Transfer.LOAD` of one tile, whose
        weights are of int4: the beats of a tile less 1, see `packed_beats`. 0 for others. The tiles
        follow each other, and each starts at a word of the program memory. With
        `ParameterPlace.ROW`, the words of a tile count instead of ``count_0``.
    """

    kind: int = _bits(2)
    last: int = _bits(1)
    emitting: int = _bits(1)
    count_0: int = _bits(_COUNT, default=1)
    count_1: int = _bits(_COUNT, default=1)
    count_2: int = _bits(_COUNT, default=1)
    count_3: int = _bits(_COUNT, default=1)
    count_4: int = _bits(_COUNT, default=1)
    blocks_0: int = _bits(2)
    blocks_1: int = _bits(2)
    main: int = _bits(_WORD)
    main_0: int = _bits(_WORD)
    main_1: int = _bits(_WORD)
    main_2: int = _bits(_WORD)
    main_3: int = _bits(_WORD)
    main_4: int = _bits(_WORD)
    operand: int = _bits(_GROUP)
    operand_0: int = _bits(_GROUP)
    operand_1: int = _bits(_GROUP)
    operand_2: int = _bits(_GROUP)
    operand_3: int = _bits(_GROUP)
    operand_4: int = _bits(_GROUP)
    halved: int = _bits(1)
    heads: int = _bits(6, default=1)
    parameter: int = _bits(_PARAMETER)
    parameter_0: int = _bits(_PARAMETER)
    parameter_1: int = _bits(_PARAMETER)
    parameter_2: int = _bits(_PARAMETER)
    parameter_place: int = _bits(2)
    out: int = _bits(_GROUP)
    out_0: int = _bits(_GROUP)
    out_1: int = _bits(_GROUP)
    out_2: int = _bits(_GROUP)
    out_place: int = _bits(2)
    side: int = _bits(10)
    lane_operand: int = _bits(3)
    factor: int = _bits(2)
    residual: int = _bits(1)
    shift: int = _bits(7, signed=True)
    reduction: int = _bits(3)
    unmasked: int = _bits(1)
    source: int = _bits(2)
    addend: int = _bits(32)
    follow: int = _bits(6)
    transfer: int = _of_transfers(2)
    program: int = _of_transfers(PROGRAM_BITS)
    packed: int = _of_transfers(15, "int4")

    def __post_init__(self):
        for each in dataclasses.fields(self):
            bits, signed = each.metadata["bits"], each.metadata["signed"]
            low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
            value = getattr(self, each.name)
            if not low <= value < high:
                raise ValueError(f"{each.name} must be in {low}..{high - 1}, not {value}")
            if each.name.startswith(("count", "heads")) and not value:
                raise ValueError(f"{each.name} must be at least 1, not 0")

    def pack(self) -> bytes:
        """The bytes of the descriptor, little-endian."""
        number, place = 0, 0
        for each in dataclasses.fields(self):
            bits = each.metadata["bits"]
            number |= (int(getattr(self, each.name)) & ((1 << bits) - 1)) << place
            place += bits
        return number.to_bytes(DESCRIPTOR_BYTES, "little")


def packed_beats(words: int) -> int:
    """The beats of a tile of int4 in the program memory, of so many words of the main memory.

    For four words, or the last ones of the tile, a beat has their scales: four bits for each
    column, those of the first word in the lowest bits. The codes follow, four beats for each word:
    two columns a beat, four bits for each weight.
    """
    return -(-words // SCALED_WORDS) + CODE_BEATS * words


def field_shapes(*, transfers: bool = False, int4: bool = False) -> dict[str, tuple[int, bool]]:
    """Bits of each field of a `Pass`, and whether it is signed, in the order of their places.

    ``transfers`` includes those that only a core with a program memory has, ``int4`` that of a core
    that unpacks weights.
    """
    there = {None: True, "transfers": transfers, "int4": int4}
    return {
        each.name: (each.metadata["bits"], each.metadata["signed"])
        for each in dataclasses.fields(Pass) if there[each.metadata.get("of")]
    }


assert 4096 * 4 * 32767 < 1 << TOTAL_BITS
_ALL = field_shapes(transfers=True, int4=True)
assert sum(bits for bits, _ in _ALL.values()) <= DESCRIPTOR_BITS
assert packed_beats((1 << _COUNT) - 1) <= 1 << _ALL["packed"][0]
