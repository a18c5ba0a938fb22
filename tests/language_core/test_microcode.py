"""The instructions of a microprogram: their numbers, their ranges, their cycles."""

import dataclasses

import pytest

from weft.language_core.microcode import (
    INSTRUCTION_BITS,
    KIND_BITS,
    Coin,
    End,
    Idle,
    Instruction,
    Lane,
    Load,
    Product,
    Scalar,
    Setup,
    cycles_of,
    field_shapes,
)

KINDS = Idle, Product, Lane, Setup, Load, Scalar, Coin, End


def test_all_fields_fit_an_instruction():
    for kind in KINDS:
        bits = sum(bits * count for bits, _, count in field_shapes(kind).values())
        assert KIND_BITS + bits <= INSTRUCTION_BITS


def test_kinds_are_not_those_of_an_empty_memory():
    numbers = {kind().pack() & 15 if kind in (Idle, Coin, End) else int(kind.KIND)
               for kind in KINDS}
    assert len(numbers) == len(KINDS) and 0 not in numbers


def test_fields_follow_each_other():
    found = Product(value=5, first=1, cached=0, word=300, weights=(1, -1, -128, 127))
    assert found.pack() == (
        2 | 5 << 4 | 1 << 13 | 300 << 15 | 1 << 24 | 0xFF << 32 | 0x80 << 40 | 127 << 48
    )
    assert Setup(out=1, step=2, shift=-3).pack() == 4 | 1 << 4 | 2 << 15 | (125 << 31)


@pytest.mark.parametrize("kind, given, message", [
    (Product, {"weights": (0, 0, 128, 0)}, "weights must be in -128..127, not 128"),
    (Lane, {"multiplier": -1}, "multiplier must be in 0..65535, not -1"),
    (Setup, {"out": 2048}, "out must be in 0..2047, not 2048"),
    (Load, {"group": 1 << 14}, "group must be in 0..16383, not 16384"),
])
def test_rejects(kind, given, message):
    with pytest.raises(ValueError) as caught:
        kind(**given)
    assert str(caught.value) == message


def test_cycles_end_with_the_first_end_that_is_one():
    code = [Idle(), Load(), End(within_prompt=1), Idle(), Idle(), End(), Idle()]
    assert cycles_of(code) == 1 + 1 + 2 + 1 + 2 + 1
    assert cycles_of(code, emits=False) == 1 + 1 + 2 + 1
    with pytest.raises(ValueError, match="the instructions must have an end"):
        cycles_of(code[:5])


def test_instructions_are_frozen():
    assert all(dataclasses.is_dataclass(kind) and issubclass(kind, Instruction) for kind in KINDS)
