"""Text of a file in a form that a terminal, a page or a comment shows and does not obey."""

__all__ = ["short", "visible"]


def visible(text: str, keep: str = "") -> str:
    r"""``text`` with control characters as escapes: ``\x1b``, ``\n``, ``\u202e``.

    So are marks that change the direction of text, separators of lines, spaces other than the
    ordinary one, and all else that is not printed. ``keep`` has characters that stay.
    """
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text
    )


def short(name: str) -> str:
    """``name`` in at most 60 characters, for messages: the middle of a longer one is left out.

    Converters give a fused operator the names of all its parts.
    """
    return name if len(name) <= 60 else f"{name[:36]}...{name[-21:]}"
