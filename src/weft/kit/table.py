"""Tables in Markdown."""

__all__ = ["table"]


def table(head, rows) -> str:
    """A table with the titles ``head``; a row is a sequence of texts."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)
