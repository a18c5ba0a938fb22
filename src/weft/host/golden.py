"""A transport to a golden core in numpy: it takes commands and answers as hardware would."""

from collections import Counter

from weft.commands import Job
from weft.config import Config
from weft.design import PRODUCT
from weft.host.emulated import EmulatedTransport
from weft.host.golden_core import CORES

__all__ = ["GoldenTransport"]

_MAX_UNCOUNTED = 1 << 20  # maximum commands whose cycles are not counted yet: some 300 MiB


class GoldenTransport(EmulatedTransport):
    """A `Transport` to an exact model of a core; it answers at once.

    The cycle model gives the counters of cycles. It runs when they are read; until then the
    transport stores the commands, equal batches once.

    `TransportError` reports commands whose effect on a core is undefined: a load outside the
    buffer, or invalid parameters.

    Parameters
    ----------
    config : Config
        Config of the core.
    """

    def __init__(self, config: Config):
        if getattr(config, "kind", None) != PRODUCT:
            raise TypeError(f"config must be a weft.Config, not {config!r}")
        super().__init__(CORES[config.dtype](config))
        self._batch: list = []
        # Commands whose cycles are not counted yet: number of runs.
        self._batches: Counter = Counter()
        self._uncounted = 0  # commands in these batches

    def _executed(self, commands):
        self._batch += commands

    def _idle(self):
        if self._batch:
            self._defer(self._batch)
            self._batch = []

    def _defer(self, batch):
        """Store a batch; its cycles are counted when they are read."""
        commands = tuple(_untagged(command) for command in batch)
        if commands not in self._batches:
            self._uncounted += len(batch)
        self._batches[commands] += 1
        if self._uncounted > _MAX_UNCOUNTED:
            self._count_cycles()

    def _count_cycles(self):
        """Add the cycles of the stored batches to the counters."""
        from weft.cycles import predict

        for commands, times in self._batches.items():
            prediction = predict(self._config, list(commands))
            self._counters["busy"] += times * prediction.cycles
            for name in ("active", "starved", "stalled"):
                self._counters[name] += times * getattr(prediction, name)
        self._batches.clear()
        self._uncounted = 0


def _untagged(command):
    """Return a command; a job without its tag, which costs no cycles."""
    return command.tagged(0) if isinstance(command, Job) else command
