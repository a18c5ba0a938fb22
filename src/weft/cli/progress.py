"""Progress of a command's long tasks: live on a terminal, plain lines elsewhere."""

import time
from contextlib import contextmanager

__all__ = ["Progress", "progress"]


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
