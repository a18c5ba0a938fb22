"""Progress of a command's long tasks: live on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from contextlib import contextmanager

from weft.hints import visible

__all__ = ["Progress", "SlowTask", "progress", "slow_task"]

PATIENCE = 3.0  # seconds before a task that may be short is shown
INTERVAL = 5.0  # seconds between two lines of it


class Progress:
    """Shows tasks: live on a terminal; elsewhere a line at the start, the quarters, the end."""

    def __init__(self, console, live):
        self._console, self._live = console, live

    @contextmanager
    def task(self, text, total=None):
        """Context manager: a task that runs during the block; returns ``advance(steps=1)``.

        ``total`` is the number of steps of the task. An exception in the block is shown as a
        failure, and passed on.
        """
        start = time.monotonic()
        show = self._show_live(text, total) if self._live else self._show_plain(text, total)
        with show as advance:
            try:
                yield advance
            except BaseException:
                self._show_end("failed", text, start, "red")
                raise
        self._show_end("done", text, start, "green")

    def say(self, text):
        """Print a line of text."""
        text = visible(text, keep="\n")
        self._console.print(
            f"        {text}", highlight=False, markup=False, soft_wrap=self._live is None
        )

    def _show_end(self, outcome, text, start, style):
        from rich.text import Text

        duration = f"  {time.monotonic() - start:.1f} s"
        line = Text.assemble((f"{outcome:>6}", style), f"  {text}", (duration, "dim"))
        self._console.print(line, soft_wrap=self._live is None)

    @contextmanager
    def _show_live(self, text, total):
        from rich.markup import escape

        task = self._live.add_task(escape(text), total=total, count="")
        start, done = time.monotonic(), 0

        def advance(steps=1):
            nonlocal done
            done += steps
            count = ""
            if total and done:
                count = f"{done} of {total}, {_to_go(time.monotonic() - start, done / total)}"
            self._live.update(task, advance=steps, count=count)

        try:
            yield advance
        finally:
            self._live.remove_task(task)

    @contextmanager
    def _show_plain(self, text, total):
        """A line at the start, and one after each quarter of ``total``."""
        from rich.text import Text

        self._console.print(Text(f"   ...  {text}"), soft_wrap=True)
        start, done = time.monotonic(), 0

        def advance(steps=1):
            nonlocal done
            before, done = done, done + steps
            if total and done < total and 4 * before // total < 4 * done // total:
                rest = _to_go(time.monotonic() - start, done / total)
                line = Text(f"   ...  {text}: {done} of {total}, {rest}")
                self._console.print(line, soft_wrap=True)

        yield advance


@contextmanager
def progress(console=None):
    """Context manager: a `Progress` on ``console``, by default the standard output.

    ``with progress() as show, show.task("building the model", total=3) as advance: advance()``
    """
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress
    from rich.table import Column

    console = console or Console()
    if not console.is_terminal:
        yield Progress(console, None)
        return
    text = TextColumn("{task.description}", table_column=Column())
    count = TextColumn("{task.fields[count]}")
    # A long text goes on in the next line, so that the time has its space.
    elapsed = TimeElapsedColumn(table_column=Column(no_wrap=True))
    columns = (SpinnerColumn(), text, BarColumn(), count, elapsed)
    with RichProgress(*columns, console=console, transient=True) as live:
        yield Progress(console, live)


class SlowTask:
    """What is done of a `slow_task`: steps, or a part of it."""

    def __init__(self, total: int | None):
        self._start, self._total = time.monotonic(), total
        self._steps, self._part = 0, 0.0

    def __call__(self) -> None:
        """Tell that one more step is done."""
        self._steps += 1
        if self._total:
            self._part = self._steps / self._total

    def watch(self, part: float) -> None:
        """Tell the part that is done, from 0 to 1."""
        self._part = part

    def state(self) -> str:
        """What is done, and the remaining time, if they are known; else the time until now."""
        seconds = time.monotonic() - self._start
        if not self._part:
            return f"{seconds:.0f} s"
        done = f"{self._steps} of {self._total}" if self._total else f"{self._part:.0%}"
        return f"{done}, {_to_go(seconds, self._part)}"


def _to_go(seconds, part):
    """The time that the rest of a task takes, after ``seconds`` for a part of it."""
    return f"about {seconds * (1 / part - 1):.0f} s to go"


@contextmanager
def slow_task(text: str, total: int | None = None):
    """Context manager: a task that is usually short; it is shown if it takes over 3 seconds.

    The lines go to the standard error, as the standard output may be JSON. The block gets a
    `SlowTask`, to call after each of ``total`` steps: then the lines have the remaining time.
    """
    task, ended = SlowTask(total), threading.Event()

    def show():
        wait = PATIENCE
        while not ended.wait(wait):
            print(f"   ...  {visible(text)}: {task.state()}", file=sys.stderr, flush=True)
            wait = INTERVAL

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield task
    finally:
        ended.set()
        thread.join()
