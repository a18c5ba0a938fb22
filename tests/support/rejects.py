"""Checks of error messages: the whole text, letter by letter."""

import contextlib

import pytest

from weft.config import ConfigError

__all__ = ["refusal", "rejects"]


@contextlib.contextmanager
def rejects(kind: type | tuple, text: str):
    """Check that the block raises ``kind`` with exactly the message ``text``."""
    with pytest.raises(kind) as caught:
        yield
    assert str(caught.value) == text


def refusal(make, *args, **options) -> str:
    """The message of the ConfigError that a call raises."""
    with pytest.raises(ConfigError) as caught:
        make(*args, **options)
    return str(caught.value)
