"""What a command shows: the table of a network's layers, and progress on long work."""

import time
from contextlib import contextmanager
from dataclasses import dataclass

from weft.cli.activity import Timeline, activity_picture

__all__ = ["LayerRow", "Progress", "Timeline", "activity_picture", "layer_table", "progress"]


@dataclass(frozen=True, kw_only=True)
class LayerRow:
    """One layer's line in `layer_table`.

    Attributes
    ----------
    name : str
    m, k, n : int
        The job, [m, k] x [k, n].
    cycles : int
        As measured.
    predicted : int
        As the cycle model says.
    utilization : float
        In steady state, 0..1.
    match : bool
        Whether every result equals golden's.
    """

    name: str
    m: int
    k: int
    n: int
    cycles: int
    predicted: int
    utilization: float
    match: bool

    def __post_init__(self):
        for name in ("m", "k", "n", "cycles", "predicted"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, not {getattr(self, name)}")
        if not 0 <= self.utilization <= 1:
            raise ValueError(f"utilization must be in 0..1, not {self.utilization}")


def layer_table(
    rows, *, images, accuracy, float_accuracy, numbers="INT8", console=None
) -> bool:
    """Prints ``rows``, their total, and a line on accuracy; says whether all is as it should be.

    Parameters
    ----------
    rows : sequence of LayerRow
    images : int
        How many images went through the layers.
    accuracy, float_accuracy : float
        Shares of ``images`` told right by the hardware, and by the float model.
    numbers : str
        What the hardware computes with.
    console : rich Console, optional

    Returns
    -------
    bool
        True where every layer matches golden and takes the predicted cycles.

    Raises
    ------
    ValueError
        For no rows, or an accuracy outside 0..1.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    if not rows:
        raise ValueError("rows must be one or more, not none")
    for name, value in (("accuracy", accuracy), ("float_accuracy", float_accuracy)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be in 0..1, not {value}")
    table = Table(box=SIMPLE_HEAD, show_footer=len(rows) > 1, footer_style="bold", pad_edge=False)
    cycles, predicted = sum(row.cycles for row in rows), sum(row.predicted for row in rows)
    matches = all(row.match for row in rows)
    for name, align, foot in (
        ("layer", "left", "all"),
        ("M x K x N", "right", ""),
        ("cycles", "right", f"{cycles:,}"),
        ("predicted", "right", _checked(f"{predicted:,}", cycles == predicted)),
        ("steady-state\nutilization", "right", ""),
        ("golden", "center", _checked("yes" if matches else "NO", matches)),
    ):
        table.add_column(name, foot, justify=align, no_wrap=True)
    for row in rows:
        table.add_row(
            Text(row.name),
            f"{row.m} x {row.k} x {row.n}",
            f"{row.cycles:,}",
            _checked(f"{row.predicted:,}", row.predicted == row.cycles),
            f"{row.utilization:.1%}",
            _checked("yes" if row.match else "NO", row.match),
        )
    console = console or Console()
    console.print(table)
    console.print(
        f"Accuracy on {images} images: [bold]{accuracy:.2%}[/] {numbers} on the hardware, "
        f"{float_accuracy:.2%} float32.",
        highlight=False,
    )
    return matches and all(row.cycles == row.predicted for row in rows)


def _checked(text, good):
    from rich.text import Text

    return Text(text, style="green" if good else "bold red")


class Progress:
    """Shows tasks: live on a terminal; elsewhere as plain lines, at a task's start and end."""

    def __init__(self, console, live):
        self._console, self._live = console, live

    @contextmanager
    def task(self, text, total=None):
        """A task under way while the block runs; gives ``advance(steps=1)``.

        With ``total``, so many steps make the whole. An exception ends the task, and goes on.
        """
        start = time.monotonic()
        show = self._show_live(text, total) if self._live else self._show_plain(text, total)
        with show as advance:
            try:
                yield advance
            except BaseException:
                self._say("failed", text, start, "red")
                raise
        self._say("done", text, start, "green")

    def say(self, text):
        """A line of its own."""
        self._console.print(f"        {text}", highlight=False, markup=False)

    def _say(self, outcome, text, start, style):
        from rich.text import Text

        spent = f"  {time.monotonic() - start:.1f} s"
        self._console.print(Text.assemble((f"{outcome:>6}", style), f"  {text}", (spent, "dim")))

    @contextmanager
    def _show_live(self, text, total):
        from rich.markup import escape

        task = self._live.add_task(escape(text), total=total, count="")
        reached = 0

        def advance(steps=1):
            nonlocal reached
            reached += steps
            count = f"{reached} of {total}" if total else ""
            self._live.update(task, advance=steps, count=count)

        try:
            yield advance
        finally:
            self._live.remove_task(task)

    @contextmanager
    def _show_plain(self, text, total):
        """A line at the start, and one for each quarter of ``total``."""
        from rich.text import Text

        self._console.print(Text(f"   ...  {text}"))
        reached = 0

        def advance(steps=1):
            nonlocal reached
            before, reached = reached, reached + steps
            if total and reached < total and 4 * before // total < 4 * reached // total:
                self._console.print(Text(f"   ...  {text}: {reached} of {total}"))

        yield advance


@contextmanager
def progress(console=None):
    """A `Progress`: live where ``console`` (standard output by default) is a terminal.

    ``with progress() as show, show.task("building the model", total=3) as advance: advance()``
    """
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Live

    console = console or Console()
    if not console.is_terminal:
        yield Progress(console, None)
        return
    text, count = TextColumn("{task.description}"), TextColumn("{task.fields[count]}")
    columns = (SpinnerColumn(), text, BarColumn(), count, TimeElapsedColumn())
    with Live(*columns, console=console, transient=True) as live:
        yield Progress(console, live)
