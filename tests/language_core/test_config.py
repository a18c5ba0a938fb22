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
])
def test_rejects(given, message):
    with pytest.raises(ValueError) as caught:
        LanguageCoreConfig(**given)
    assert str(caught.value) == message
