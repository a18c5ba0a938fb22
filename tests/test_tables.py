"""Tables leave out columns, and never cut a name."""

import io

from rich.console import Console

from weft.tables import Column, fitted_table

COLUMNS = (
    Column("name", left=True), Column("a", 2), Column("empty", 1), Column("b", 1), Column("c", 2),
)
ROWS = [("[b]short", "1", "", "22", "3"), ("a-long-name", "", "", "4444", "")]


def shown(width):
    console = Console(width=width, file=io.StringIO())
    console.print(fitted_table(console, COLUMNS, ROWS))
    head, _, *rows = [line.split() for line in console.file.getvalue().splitlines() if line.strip()]
    return head, rows


def test_it_shows_all_but_what_is_empty():
    assert shown(80) == (
        ["name", "a", "b", "c"], [["[b]short", "1", "22", "3"], ["a-long-name", "4444"]],
    )


def test_the_highest_rank_goes_first_and_as_soon_as_it_does_not_fit():
    widths = [width for width in range(10, 60) if "a" in shown(width)[0]]
    assert min(widths) == 28 and widths == list(range(28, 60))
    assert shown(27)[0] == ["name", "b"]
    assert shown(18)[0] == ["name"]


def test_a_name_that_is_too_long_goes_on_in_the_next_line():
    head, rows = shown(8)
    assert "".join(word for row in rows for word in row) == "[b]shorta-long-name"


def test_without_rows_it_has_its_names():
    console = Console(width=80, file=io.StringIO())
    console.print(fitted_table(console, [Column("name"), Column("a", 1)], []))
    assert console.file.getvalue().split()[0] == "name"
