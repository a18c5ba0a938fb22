"""Checks of error messages: the whole text, letter by letter."""

import contextlib

import pytest

__all__ = ["rejects"]


@contextlib.contextmanager
def rejects(kind: type | tuple, text: str):
    """Check that the block raises ``kind`` with exactly the message ``text``."""
    with pytest.raises(kind) as caught:
        yield
    assert str(caught.value) == text
