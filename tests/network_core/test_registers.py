"""Registers of a network core: what they describe, and words that are refused."""

from dataclasses import replace

import pytest

from weft import registers
from weft.config import Config
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.register_map import REGISTERS, decode, describe

CORE = Config(rows=2, cols=4, depth=4, lanes=2, requantize="tflite", activation="none")
CHIP = NetworkCoreConfig(array=CORE, words=64, b_words=32, lines=16, read_vectors=2)


def test_registers_describe_the_network_core():
    words = dict(zip(REGISTERS, describe(CHIP), strict=False))
    assert [words[name] for name in registers.IDENTITY] == registers.identity(CHIP)
    assert words["hash"] == CHIP.hash and (words["array_rows"], words["array_cols"]) == (2, 4)
    assert (words["words"], words["b_words"], words["lines"]) == (64, 32, 16)
    assert (words["read_vectors"], words["program_words"], words["vectors"]) == (2, 0, 3 * 64)
    assert decode(describe(CHIP)) == CHIP


def test_registers_have_the_order_of_the_parameters():
    fields = [f"array_{name}" for name in registers.FIELDS]
    assert REGISTERS == [
        "magic", "version", "kind", "hash", *fields,
        "words", "b_words", "lines", "read_vectors", "program_words",
        "vectors", "net_status", "net_cycles", "net_result", "net_result_bytes",
    ]


def test_the_words_of_a_program_memory_are_a_register():
    config = replace(CHIP, program_words=128)
    words = describe(config)
    assert words[REGISTERS.index("program_words")] == 128 and decode(words) == config


def test_the_hash_tells_the_options():
    """A core without options has the registers of one from before them."""
    config = replace(CHIP, multiply_maps=True)
    words, without = describe(config), describe(CHIP)
    place = REGISTERS.index("hash")
    assert words[:place] + words[place + 1 :] == without[:place] + without[place + 1 :]
    assert decode(words) == config and decode(without) == CHIP


def changed(name, value):
    words = describe(CHIP)
    words[REGISTERS.index(name)] = value
    return words


@pytest.mark.parametrize("words, text", [
    ([1], r"registers must be \d+ or more, not 1"),
    (registers.describe(CORE) + [0] * 20, "must be a network core, not a product core"),
    (changed("magic", 1), r"register magic must be 0x54464557 \('WEFT'\), not 0x00000001; if"),
    (changed("version", 3), "register version must be 4, not 3; if Weft made the core, make it"),
    (changed("array_target", 99), "register array_target must be under"),
    (changed("lines", 32), "register hash must be 0x.* for its own fields"),
    (changed("words", 63), "words must be a power of two"),
    (changed("array_rows", 3), "register hash must be"),
])
def test_other_words_are_refused(words, text):
    with pytest.raises(ValueError, match=text):
        decode(words)
