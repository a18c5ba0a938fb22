"""Registers of a network core: what they describe, and words that are refused."""

import pytest

from weft import registers
from weft.config import Config
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.registers import REGISTERS, decode, describe

CORE = Config(rows=2, cols=4, depth=4, lanes=2, requantize="tflite", activation="none")
CHIP = NetworkCoreConfig(array=CORE, words=64, b_words=32, lines=16, read_vectors=2)


def test_registers_describe_the_network_core():
    words = dict(zip(REGISTERS, describe(CHIP), strict=False))
    assert words["magic"].to_bytes(4, "little") == b"WNET"
    assert (words["hash"], words["core_hash"]) == (CHIP.hash, CORE.hash)
    assert (words["words"], words["b_words"], words["lines"]) == (64, 32, 16)
    assert (words["read_vectors"], words["NET_MEMORY"]) == (2, 3 * 64)
    assert decode(describe(CHIP)) == CHIP


def changed(name, value):
    words = describe(CHIP)
    words[REGISTERS.index(name)] = value
    return words


@pytest.mark.parametrize("words, text", [
    ([1], r"registers must be \d+ or more, not 1"),
    (registers.describe(CORE) + [0] * 20, "must be a network core, not one for matrix"),
    (changed("magic", 1), r"register magic must be 0x54454e57 \('WNET'\), not 0x00000001"),
    (changed("version", 9), "register version must be 2, not 9"),
    (changed("lines", 32), "register hash must be 0x.* for its own fields"),
    (changed("words", 63), "words must be a power of two"),
    (changed("core_rows", 3), "register hash must be"),
])
def test_other_words_are_refused(words, text):
    with pytest.raises(ValueError, match=text):
        decode(words)
