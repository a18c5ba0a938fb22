"""Tables of text that fit their terminal: columns are left out, names are never cut."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["Column", "fitted_table"]


@dataclass(frozen=True)
class Column:
    """A column; a narrow terminal leaves out those of the highest ``rank``, and never rank 0."""

    name: str
    rank: int = 0
    left: bool = False


def fitted_table(
    console: "Console", columns: Sequence[Column], rows: Iterable[Sequence[str]]
) -> "Table":
    """A table without the columns that are empty, and without those that ``console`` cuts."""
    cells = list(zip(*rows, strict=True)) or [()] * len(columns)
    shown = [
        (column, texts) for column, texts in zip(columns, cells, strict=True)
        if any(texts) or not column.rank
    ]
    droppable = sorted((column.rank for column, _ in shown if column.rank), reverse=True)
    table = _table(shown)
    for rank in droppable:
        if _width(console, table) <= console.width:
            break
        shown = [pair for pair in shown if pair[0].rank != rank]
        table = _table(shown)
    return table


def _table(shown):
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column, _ in shown:
        table.add_column(
            column.name, justify="left" if column.left else "right",
            no_wrap=bool(column.rank), overflow="fold",
        )
    for row in zip(*(texts for _, texts in shown), strict=True):
        table.add_row(*map(Text, row))  # a name may have the brackets of a mark
    return table


def _width(console, table):
    """The columns of a terminal that shows all of the table."""
    wide = console.options.update(width=1 << 16)
    return table.__rich_measure__(console, wide).maximum
