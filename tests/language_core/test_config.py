"""Sizes of a language core: limits, and all problems in one message."""

import pytest

from weft.language_core.config import LanguageCoreConfig


def test_default():
    config = LanguageCoreConfig()
    assert (config.words, config.groups, config.vectors) == (3072, 2048, 512)


@pytest.mark.parametrize("given, message", [
    ({"words": 0}, "words must be in 16..4096, not 0"),
    ({"groups": 40}, "groups must be a multiple of 16, not 40"),
    (
        {"side_groups": 2000, "words": 17},
        "side_groups must be in 4..1024, not 2000; words must be a multiple of 16, not 17",
    ),
    (
        {"target": "other"},
        "target must be one of generic, ecp5, ice40hx, ice40up, gowin, not other",
    ),
    (
        {"microprogram": True, "words": 1040, "side_groups": 128, "groups": 128},
        "words must be in 16..1024, not 1040",
    ),
    (
        {"microprogram": True, "words": 64, "side_groups": 128, "groups": 128, "target": "ecp5"},
        "target must be generic or ice40up with a microprogram, not ecp5",
    ),
])
def test_rejects(given, message):
    with pytest.raises(ValueError) as caught:
        LanguageCoreConfig(**given)
    assert str(caught.value) == message


def test_int4_needs_a_program_memory():
    with pytest.raises(ValueError, match="^int4 must be false without a program memory, not true$"):
        LanguageCoreConfig(int4=True)
    config = LanguageCoreConfig(program_words=1024, int4=True)
    assert config.name == "language_1x8x16_3072_program1024_int4"


def test_a_microprogram_has_other_columns():
    config = LanguageCoreConfig(words=64, groups=16, side_groups=64, microprogram=True)
    assert (config.columns, config.depth, config.peak) == (4, 1, 4)
    assert config.name == "language_1x4x1_64"
