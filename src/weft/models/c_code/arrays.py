"""Numbers, arrays and structs as C text."""

import textwrap

import numpy as np

__all__ = ["array", "numbers", "struct"]

_LEAST = -(1 << 31)


def numbers(values) -> str:
    """Integers in decimal, with commas; -2**31 as an expression, since C has no such literal."""
    texts = (str(value) for value in np.ravel(values).tolist())
    return ", ".join("(-2147483647 - 1)" if text == str(_LEAST) else text for text in texts)


def array(kind: str, name: str, values) -> str:
    """The definition of a constant array, aligned to words where the compiler can do it."""
    return _definition(f"static const {kind} {name}[] NET_ALIGNED", numbers(values))


def struct(kind: str, name: str, *fields) -> str:
    """The definition of a constant struct, or of an array of structs if ``name`` ends in ``[]``.

    A field is text, a number, or numbers.
    """
    texts = [field if isinstance(field, str) else numbers(field) for field in fields]
    return _definition(f"static const {kind} {name}", ", ".join(texts))


def _definition(head, body):
    lines = textwrap.wrap(body, 96, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f"{head} = {{", *(f"    {line}" for line in lines), "};"])
