"""The instructions of a language core with a microprogram, and when each may follow another.

The program of a token has no loops: one instruction a cycle, with its weights and its addresses.
An instruction is a parameter group, 8 bytes of the main memory. Its fields follow each other from
bit 0 on, in the order of the attributes of its class; the other bits are 0. Addresses of the
activation memory are values of 16 bits; those of the side memory, which has keys and values, are
words of four int8.
"""

import dataclasses
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from weft.latencies import ICE40_DSP_ACCUMULATOR, MEMORY_READ

__all__ = [
    "DRAIN", "END_CYCLES", "INSTRUCTION_BITS", "KIND_BITS", "LANE_OUT", "LANE_TABLE", "LANE_VALUE",
    "NORMALISED", "NUMBER_BITS", "ROW_GROUPS", "SUM", "By", "Coin", "End", "Idle", "Instruction",
    "Lane", "Load", "MicroReduction", "Opcode", "Operation", "Product", "ResultPlace", "Scalar",
    "Setup", "Shift", "Table", "ValueSource", "cycles_of", "field_shapes",
]

INSTRUCTION_BITS, KIND_BITS = 64, 4
ROW_GROUPS = 16  # from an embedding to the next one: 64 channels
NUMBER_BITS = 40  # of the number that `Scalar` normalises: 64 squares of int16, and an addend

# Latencies from an instruction on, in cycles.
LANE_VALUE = MEMORY_READ  # the value of a lane is there
LANE_TABLE = LANE_VALUE + 1 + MEMORY_READ + ICE40_DSP_ACCUMULATOR + 2  # and what the table gives
LANE_OUT = LANE_TABLE + 1  # and the result, which the activation memory writes in this cycle
assert LANE_TABLE == LANE_VALUE + ICE40_DSP_ACCUMULATOR + 5  # sum, shifts, clamp, rounding
SUM = MEMORY_READ + ICE40_DSP_ACCUMULATOR - 1  # to the lane that takes the sum of the products
DRAIN = LANE_OUT + ICE40_DSP_ACCUMULATOR + 1  # from the last lane to a change of what lanes do
NORMALISED = 10  # from a `Scalar` to the lane that takes its argument
END_CYCLES = 1  # of a token, beside its instructions


class Opcode(IntEnum):
    """What an instruction does; 0 is an error."""

    IDLE = 1
    PRODUCT = 2
    LANE = 3
    SETUP = 4
    LOAD = 5
    SCALAR = 6
    COIN = 7
    END = 8


class Operation(IntEnum):
    """What a lane computes."""

    SCALED = 0  # S(value, multiplier, shift)
    DISTANCE = 1  # S(value - pivot, multiplier, shift)
    TABLE = 2  # an entry of a table


class Table(IntEnum):
    """A table, and its argument."""

    EXP = 0  # of 16 * (pivot - value), at most 65,535
    RECIPROCAL = 1  # of the last `Scalar`
    RSQRT = 2  # of the last `Scalar`


class ResultPlace(IntEnum):
    """Where results go."""

    NONE = 0
    ACTIVATIONS = 1  # values
    SIDE = 2  # bytes: the keys and values of the cache
    SCALE = 3  # the multiplier of lanes that are scaled


class Shift(IntEnum):
    """What is added to the first place of the results."""

    NONE = 0
    POSITION = 1
    ROW = 2  # 16 times the position


class ValueSource(IntEnum):
    """Where the value of a lane comes from."""

    SUM = 0  # of a column
    VALUE = 1  # of the activation memory
    LOADED = 2  # a quarter of the group that `Load` has read


class By(IntEnum):
    """What chooses the row of an embedding."""

    TOKEN = 0
    POSITION = 1


class MicroReduction(IntEnum):
    """What is computed of results, besides storing them."""

    NONE = 0
    MAXIMUM = 1  # and the number of the first of the largest results
    TOTAL = 2
    SQUARES = 3
    PICK = 4  # the number of the first result whose running sum exceeds the mark of the coin


def _bits(bits, *, default=0, signed=False, count=1):
    return field(default=default, metadata={"bits": bits, "signed": signed, "count": count})


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """An instruction; its first KIND_BITS bits are its kind."""

    KIND: ClassVar[Opcode]
    CYCLES: ClassVar[int] = 1

    def __post_init__(self):
        for each in dataclasses.fields(self):
            bits, signed = each.metadata["bits"], each.metadata["signed"]
            low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
            value = getattr(self, each.name)
            values = value if each.metadata["count"] > 1 else (value,)
            for value in values:
                if not low <= value < high:
                    raise ValueError(f"{each.name} must be in {low}..{high - 1}, not {value}")

    def pack(self) -> int:
        """The number of the instruction."""
        number, place = int(self.KIND), KIND_BITS
        for each in dataclasses.fields(self):
            value, bits = getattr(self, each.name), each.metadata["bits"]
            for part in value if each.metadata["count"] > 1 else (value,):
                number |= (int(part) & ((1 << bits) - 1)) << place
                place += bits
        return number


@dataclass(frozen=True, kw_only=True)
class Idle(Instruction):
    """Nothing."""

    KIND = Opcode.IDLE


@dataclass(frozen=True, kw_only=True)
class Product(Instruction):
    """``sum[c] <= (0 if first else sum[c]) + value * weight[c]`` in each of four columns.

    Attributes
    ----------
    value : int
        Place in the activation memory.
    first : bool
    cached : bool
        The weights are a word of the side memory.
    word : int
        Its place.
    weights : tuple of four int8
        Otherwise.
    """

    KIND = Opcode.PRODUCT
    value: int = _bits(9)
    first: int = _bits(1)
    cached: int = _bits(1)
    word: int = _bits(9)
    weights: tuple[int, int, int, int] = _bits(8, default=(0, 0, 0, 0), signed=True, count=4)


@dataclass(frozen=True, kw_only=True)
class Lane(Instruction):
    """One more value for the lane, which does with it what the last `Setup` says.

    Attributes
    ----------
    value : int
        Place in the activation memory.
    source : ValueSource
    part : int
        The column of a sum, or the quarter of a loaded group.
    multiplier : int
        16 bits, not negative.
    """

    KIND = Opcode.LANE
    value: int = _bits(9)
    source: int = _bits(2)
    part: int = _bits(2)
    multiplier: int = _bits(16)


@dataclass(frozen=True, kw_only=True)
class Setup(Instruction):
    """What the lane does with the values that follow; no result may be on its way.

    The maximum of the last results becomes the pivot. Totals and squares become 0; with
    `MicroReduction.PICK` the total becomes the mark of the coin.

    Attributes
    ----------
    out : int
        First place of the results: a value, or a byte of the side memory.
    step : int
        From the place of a result to the next one.
    moved : Shift
    out_place : ResultPlace
    operation : Operation
    table : Table
    scaled : bool
        The multiplier is the scale, and the exponent of the last `Scalar` is added to ``shift``.
    shift : int
        ``(value * multiplier + 2^(shift - 1)) >> shift``; 0 to 47 with the exponent, and 0 shifts
        and rounds nothing.
    narrow : bool
        Results are int8.
    relu : bool
        Negative results become 0.
    residual : bool
        The value at the place of the result is added.
    reduction : MicroReduction
    masked : bool
        Results are of positions: `MicroReduction.MAXIMUM` leaves out those after the current one,
        and what a table gives for them is 0.
    least : int
        Smaller results count as 0 in a total and for `MicroReduction.PICK`.
    """

    KIND = Opcode.SETUP
    out: int = _bits(11)
    step: int = _bits(7, default=1)
    moved: int = _bits(2)
    out_place: int = _bits(2)
    operation: int = _bits(2)
    table: int = _bits(2)
    scaled: int = _bits(1)
    shift: int = _bits(7, signed=True)
    narrow: int = _bits(1)
    relu: int = _bits(1)
    residual: int = _bits(1)
    reduction: int = _bits(3)
    masked: int = _bits(1)
    least: int = _bits(15)


@dataclass(frozen=True, kw_only=True)
class Load(Instruction):
    """Read a group of the row of an embedding: ``group + ROW_GROUPS * (token or position)``.

    Attributes
    ----------
    group : int
        Of the main memory.
    by : By
    """

    KIND = Opcode.LOAD
    CYCLES = 2  # no instruction is read meanwhile
    group: int = _bits(14)
    by: int = _bits(1)


@dataclass(frozen=True, kw_only=True)
class Scalar(Instruction):
    """Normalise the squares and an addend, or the total, for a table.

    With ``v = 1.f * 2^k``, the argument has the 16 bits of f, and the exponent is k. For a root,
    the argument has bit 0 of k and 15 bits of f, and the exponent is k // 2.

    Attributes
    ----------
    root : bool
        Of squares + addend; otherwise the total.
    addend : int
    """

    KIND = Opcode.SCALAR
    root: int = _bits(1)
    addend: int = _bits(32)


@dataclass(frozen=True, kw_only=True)
class Coin(Instruction):
    """Throw the coin, whose mark is a random part of the total."""

    KIND = Opcode.COIN


@dataclass(frozen=True, kw_only=True)
class End(Instruction):
    """The token ends.

    Attributes
    ----------
    within_prompt : bool
        Only if more of the prompt follows.
    """

    KIND = Opcode.END
    within_prompt: int = _bits(1)


def field_shapes(kind: type[Instruction]) -> dict[str, tuple[int, bool, int]]:
    """Bits of each field of an instruction, whether it is signed, and how many values it has."""
    return {
        each.name: tuple(each.metadata[key] for key in ("bits", "signed", "count"))
        for each in dataclasses.fields(kind)
    }


def cycles_of(instructions, *, emits: bool = True) -> int:
    """Cycles of a token, at each position, without the waits for the prompt and for the host.

    ``emits`` is false for a token of the prompt that another one follows.
    """
    total = END_CYCLES
    for each in instructions:
        total += each.CYCLES
        if isinstance(each, End) and not (each.within_prompt and emits):
            return total
    raise ValueError("the instructions must have an end")
