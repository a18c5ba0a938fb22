"""A transport to a golden core in numpy: it takes command bytes and answers as hardware would."""

from collections import Counter

from weft.commands import HEADER_BYTES, Job, Load, Opcode
from weft.config import Config
from weft.host.emulated import EmulatedTransport
from weft.host.golden_cores import CORES

__all__ = ["GoldenTransport"]

_MAX_UNCOUNTED = 1 << 20  # maximum commands whose cycles are not counted yet: 32 MiB of headers


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
        if not isinstance(config, Config):
            raise TypeError(f"config must be a weft.Config, not {config!r}")
        super().__init__(CORES[config.dtype](config))
        self._batch: list = []
        # Headers whose cycles are not counted yet: number of runs.
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
        headers = b"".join(_untagged(command) for command in batch)
        if headers not in self._batches:
            self._uncounted += len(batch)
        self._batches[headers] += 1
        if self._uncounted > _MAX_UNCOUNTED:
            self._count_cycles()

    def _count_cycles(self):
        """Add the cycles of the stored batches to the counters."""
        from weft.cycles import predict

        for headers, times in self._batches.items():
            prediction = predict(self._config, _commands(headers))
            self._counters["busy"] += times * prediction.cycles
            for name in ("active", "starved", "stalled"):
                self._counters[name] += times * getattr(prediction, name)
        self._batches.clear()
        self._uncounted = 0


def _untagged(command):
    """Return the header of a command; the tag of a job, which costs no cycles, as 0."""
    header = command.pack()
    return header[:2] + bytes(2) + header[4:] if command.opcode == Opcode.JOB else header


def _commands(headers):
    """Return the commands of concatenated headers."""
    kinds = {Opcode.JOB: Job, Opcode.LOAD: Load}
    return [
        kinds[headers[start]].unpack(headers[start : start + HEADER_BYTES])
        for start in range(0, len(headers), HEADER_BYTES)
    ]
