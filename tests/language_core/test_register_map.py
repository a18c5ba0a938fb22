"""The registers of a language core on a board."""

from dataclasses import replace

import pytest

from weft.config import Config
from weft.design import LANGUAGE
from weft.language_core.config import LanguageCoreConfig
from weft.language_core.descriptors import CoreError
from weft.language_core.register_map import (
    REGISTERS,
    STATE,
    TextState,
    decode,
    describe,
    describe_program,
)
from weft.registers import describe as describe_product
from weft.registers import kind_of

CORE = LanguageCoreConfig(words=768, groups=512, side_groups=64, target="ecp5")


def test_registers_describe_a_core():
    words = describe(CORE)
    assert len(words) == len(REGISTERS) - len(STATE)
    assert kind_of(words) == LANGUAGE
    assert decode(words) == CORE
    assert dict(zip(REGISTERS, words, strict=False))["words"] == 768


def test_registers_describe_a_core_with_a_microprogram():
    config = LanguageCoreConfig(
        words=1024, groups=128, side_groups=256, target="ice40up", microprogram=True
    )
    assert decode(describe(config)) == config


def test_registers_describe_a_program_memory():
    for config, last in (
        (CORE, []), (replace(CORE, program_words=64), [64]),
        (replace(CORE, program_words=64, int4=True), [64, 1]),
    ):
        assert describe_program(config) == last
        assert decode(describe(config), *last) == config
    with pytest.raises(ValueError, match="register int4 must be 0 or 1, not 2"):
        decode(describe(CORE), 64, 2)


def test_the_hash_tells_each_field():
    hashes = {
        config.hash for config in (
            CORE, LanguageCoreConfig(), LanguageCoreConfig(target="ecp5"),
            LanguageCoreConfig(side_groups=64), LanguageCoreConfig(groups=512),
            LanguageCoreConfig(program_words=64), LanguageCoreConfig(program_words=64, int4=True),
        )
    }
    assert len(hashes) == 7


@pytest.mark.parametrize("name, value, text", [
    ("target", 99, "register target must be under"),
    ("text_tokens", 5, "register text_tokens must be 1024, not 5"),
    ("microprogram", 2, "register microprogram must be 0 or 1, not 2"),
    ("words", 784, "register hash must be 0x"),
    ("words", 5, "words must be in 16..4096, not 5"),
    ("kind", 0, "the core must be a language core, not a product core"),
    ("magic", 0, "register magic must be"),
])
def test_rejects_registers(name, value, text):
    words = describe(CORE)
    words[REGISTERS.index(name)] = value
    with pytest.raises(ValueError, match=text):
        decode(words)


def test_rejects_another_core():
    with pytest.raises(ValueError, match="the core must be a language core, not a product core"):
        decode(describe_product(Config()))


def test_state():
    assert TextState.of(0, 0) == TextState(False, False, CoreError.NONE, 0, 0)
    assert TextState.of(0x01020203, 9) == TextState(True, True, CoreError.ABORTED, 258, 9)
