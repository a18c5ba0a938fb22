"""Descriptors of passes: places of their fields, and values that do not fit."""

import pytest

from weft.hw.language_core.layouts import PassFields
from weft.language_core.descriptors import DESCRIPTOR_BITS, DESCRIPTOR_BYTES, Kind, Pass


def test_fields_follow_each_other():
    number = int.from_bytes(Pass(kind=Kind.VECTOR, last=1, count_0=0x123).pack(), "little")
    assert number & 0b1111 == 0b0110  # kind in two bits, then last, then emitting
    assert number >> 4 & 0xFFF == 0x123
    assert len(Pass(kind=Kind.VECTOR).pack()) == DESCRIPTOR_BYTES


def test_hardware_reads_what_was_packed():
    given = {"kind": Kind.SCALAR, "main_4": 4095, "shift": -64, "addend": 0xDEADBEEF, "heads": 63}
    number = int.from_bytes(Pass(**given).pack(), "little")
    layout = PassFields()
    assert layout.size <= DESCRIPTOR_BITS
    fields = layout.from_bits(number & ((1 << layout.size) - 1))
    assert {name: fields[name] for name in given} == given


@pytest.mark.parametrize("given, message", [
    ({"main": 4096}, "main must be in 0..4095, not 4096"),
    ({"shift": 64}, "shift must be in -64..63, not 64"),
    ({"count_3": 0}, "count_3 must be at least 1, not 0"),
    ({"heads": 0}, "heads must be at least 1, not 0"),
])
def test_rejects(given, message):
    with pytest.raises(ValueError) as caught:
        Pass(kind=Kind.PRODUCT, **given)
    assert str(caught.value) == message
