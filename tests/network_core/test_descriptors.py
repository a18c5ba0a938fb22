"""Descriptors of lists: places of fields, bytes, and values that do not fit."""

import struct
from dataclasses import replace
from itertools import pairwise

import pytest
from network_cores import network_core_config

from weft.config import Config
from weft.network_core.config import OPTIONS, NetworkCoreConfig
from weft.network_core.descriptors import (
    DESCRIPTOR_BYTES,
    ListEnd,
    ListJob,
    ListLoad,
    ListLoop,
    LoadTarget,
    join,
    places,
    split,
    unpack,
    unpack_list,
)

KINDS = [ListLoad, ListJob, ListLoop, ListEnd]


@pytest.mark.parametrize("kind", KINDS)
def test_fields_do_not_overlap(kind):
    bits = sorted((p.word * 32 + p.low, p.word * 32 + p.low + p.bits) for p in places(kind))
    assert bits[0][0] >= 8  # opcode and version
    assert all(end <= start for (_, end), (start, _) in pairwise(bits))
    assert all(start // 32 == (end - 1) // 32 for start, end in bits)


def test_a_core_without_an_option_does_not_know_its_fields():
    array = Config(cols=4, depth=4, lanes=4, requantize="tflite", activation="none")
    own, other = (
        {p.name for p in places(ListJob, NetworkCoreConfig(
            array=array, read_vectors=2, **options
        ))}
        for options in (
            dict.fromkeys(OPTIONS, True) | {"resident": False, "two_rows": False}, {}
        )
    )
    assert {p.name for p in places(ListJob)} - own == {"two_rows"}
    assert own - other == {
        "multiply", "softmax", "lstm", "pairs", "quads", "quad_pairs", "words", "pair_low",
        "pair_high", "outside_odd", "early", "span",
    }
    array = replace(array, hop=2)
    two_rows = NetworkCoreConfig(array=array, two_rows=True)
    assert {p.name for p in places(ListJob, two_rows)} - other == {"two_rows"}


def test_fields_of_a_load():
    array = Config(rows=4, cols=4, depth=4, lanes=4, requantize="tflite", activation="none")
    plain, int4, program = (
        {p.name for p in places(ListLoad, NetworkCoreConfig(
            array=array, read_vectors=2, **options
        ))}
        for options in ({}, {"int4": True}, {"program_words": 64})
    )
    assert (int4 - plain, program - plain) == ({"packed"}, {"on_chip"})


def test_bytes_of_a_load():
    load = ListLoad(
        diagonal=1, jobs=3, target=LoadTarget.PARAMETERS, fill_value=-2, source=0x1234_05,
        first_word=7, words=40,
    )
    words = struct.unpack("<32I", load.pack())
    assert words[:4] == (0x121, 0xFE01_0003, 0x1234_05, 40 << 16 | 7)
    assert not any(words[4:])


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_values_survive(kind):
    for top in (False, True):
        values = {}
        for p in places(kind):
            low = -(1 << p.bits - 1) if p.signed else 0
            values[p.name] = low + (1 << p.bits) - 1 if top else low
        descriptor = kind(**values)
        data = descriptor.pack()
        assert len(data) == DESCRIPTOR_BYTES
        assert unpack(data) == descriptor


def test_a_value_too_large_is_named():
    with pytest.raises(ValueError, match=r"stride_x of ListJob must be in 0\.\.255, not 256"):
        ListJob(stride_x=256).pack()


@pytest.mark.parametrize("word, value, text", [
    (0, 0x11, "version 2 and an opcode in 1..4"),
    (0, 0x25, "version 2 and an opcode in 1..4"),
    (31, 1 << 31, "unused bits of word 31 of ListLoad must be 0"),
    (0, 0x20, "opcode 0"),
])
def test_damaged_descriptors_are_refused(word, value, text):
    words = list(struct.unpack("<32I", ListLoad().pack()))
    words[word] = value if word == 0 else words[word] | value
    if word == 0 and value == 0x12:
        words[0] = 0x22  # version 2
    with pytest.raises(ValueError, match=text):
        unpack(struct.pack("<32I", *words))


def test_a_field_of_an_option_that_a_core_lacks_is_unused():
    data = ListJob(add=1, multiply=1).pack()
    without, with_option = (network_core_config(2, 4, 4, multiply_maps=on) for on in (False, True))
    assert unpack(data) == unpack(data, with_option) == ListJob(add=1, multiply=1)
    with pytest.raises(ValueError, match="unused bits of word 0 of ListJob must be 0, not 0x1000"):
        unpack(data, without)
    assert unpack(ListJob(add=1).pack(), without) == ListJob(add=1)


@pytest.mark.parametrize("number", [0, 1, 8, 9, 100, -1, -9, -10])
def test_addresses_have_the_bank_apart(number):
    address = split(number, 9)
    assert address & 0xFF == number % 9
    assert join(address, 9) == number


def test_steps_add_like_numbers():
    banks, step = 9, -13
    address, back = split(40, banks), split(step, banks)
    bank = (address & 0xFF) + (back & 0xFF)
    word = (address >> 8) + (back >> 8) + (bank >= banks)
    total = (word << 8 | bank % banks) & 0xFFFFFFFF
    assert join(total, banks) == 27


def test_a_list_ends_with_its_end():
    parts = [ListLoad(words=1), ListJob(columns=3), ListEnd(result_bytes=4)]
    data = b"".join(part.pack() for part in parts)
    assert unpack_list(data + b"weights") == parts
    with pytest.raises(ValueError, match="a list must have an end in its 256 bytes"):
        unpack_list(data[:256])
