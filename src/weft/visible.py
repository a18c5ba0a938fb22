"""Text of a file in a form that a terminal, a page or a comment shows and does not obey."""

__all__ = ["short", "visible"]


def visible(text: str | bytes, keep: str = "") -> str:
    r"""``text`` with control characters as escapes: ``\x1b``, ``\n``, ``\u202e``.

    So are marks that change the direction of text, separators of lines, spaces other than the
    ordinary one, and all else that is not printed. ``keep`` has characters that stay. Bytes are
    text that is no UTF-8, as the parser of a damaged ONNX file gives them.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text
    )


def short(name: str) -> str:
    """``name`` in at most 100 characters, for messages: the middle of a longer one is left out.

    Converters give a fused operator the names of all its parts; the first and the last one tell it
    apart.
    """
    return name if len(name) <= 100 else f"{name[:60]}...{name[-37:]}"
