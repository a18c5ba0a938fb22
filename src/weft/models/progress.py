"""How much of a compilation is done, for the caller that watches it."""

from collections.abc import Callable

__all__ = ["Progress", "Watch"]

Watch = Callable[[float], None]


class Progress:
    """Tells ``watch`` the part of a task that is done: from 0 to 1, and never less than before.

    A task has phases of known numbers of steps: ``begin`` a phase, then call the object with the
    number of steps that are done.

    Parameters
    ----------
    watch : callable, optional
        Called with the part that is done.
    """

    def __init__(self, watch: Watch | None = None):
        self._watch = watch
        self._done = self._first = self._share = 0.0
        self._steps = 1

    def begin(self, steps: int, share: float = 1.0) -> None:
        """Begin a phase of some steps, which takes about a share of what is left of the task."""
        self._first, self._steps = self._done, max(1, steps)
        self._share = share * (1 - self._done)

    def __call__(self, steps: int) -> None:
        """Tell that some steps of the phase are done."""
        self._done = self._first + self._share * steps / self._steps
        if self._watch:
            self._watch(self._done)
