"""Jobs with the flag ``lstm`` in the cycle model of lists."""

from collections.abc import Iterator

from weft.latencies import MEMORY_READ
from weft.network_core.config import LSTM_PARAMETERS, LSTM_WORDS
from weft.network_core.cycles.memory import SidePortTimes
from weft.network_core.cycles.output import ChunkStore
from weft.network_core.descriptors import join
from weft.network_core.latencies import DELIVERY, LSTM_FUNCTION, MAP_PRODUCT, SIDE_READ, scale

__all__ = ["LstmLayer", "lstm_cycles"]

_SUMS = 16  # bytes of a unit
_GATES = 4
_CELL = 2  # bytes of a unit
_WRITE = 1  # from a value to its write
_START = 1  # from a value to its start in the scaler
_PARTNER = 2  # from a scaled value to its function: a sum, and the limits of a cell
_PARAMETERS = LSTM_WORDS - LSTM_PARAMETERS + MEMORY_READ
_READ = 2 + 1 + SIDE_READ + DELIVERY  # of a vector: its check, its request, its arrival


def lstm_cycles(config, units: int) -> int:
    """Return the cycles of a step in time whose reads never wait."""
    array = config.array
    words = min(_GATES, max(1, array.depth // 4))  # of a vector
    vectors = 2 * _GATES // words
    reads = vectors * (_READ + (words - 1) * array.scale_cycles + 1) + _READ
    scaled = _START + scale(array)
    gates = max(1, scaled + _PARTNER + LSTM_FUNCTION + 1 - _READ)  # the cell is read beside
    products = max(1, array.scale_cycles) + 2 * (MAP_PRODUCT + scaled) + _PARTNER + LSTM_FUNCTION
    return _PARAMETERS + units * (reads + gates + 1 + products) + _WRITE


class LstmLayer:
    """`weft.hw.network_core.output.lstm.Lstm`, cycle by cycle.

    It begins in the cycle of the first `step`.

    Parameters
    ----------
    config : NetworkCoreConfig
    job : ListJob

    Attributes
    ----------
    read : int or None
        The bank of the read that it requests.
    computed : int
        The cycle of the latest store.
    """

    stored_job = None

    def __init__(self, config, job):
        self._network_core, self._job, self._depth = config, job, config.array.depth
        added, banks = join(job.add_input, config.banks), config.banks
        self._fed, self._own = join(job.input, banks), added
        self._cell = added + join(job.add_pixel_step, banks)
        self._output = join(job.output, banks)
        self._accepted = self._arrived = False
        self._store: tuple[int, bool] | None = None  # in this cycle: its bank, whether it is last
        self._now = self._free = 0  # the cycle before; the first one of the next slot
        self._cycles = self._run()
        next(self._cycles)
        self.read: int | None = None
        self.computed = 0

    def ending(self, now: int) -> bool:
        """Whether the next job may start in the next cycle."""
        return self._store is not None and self._store[1]

    def stored(self, now: int) -> ChunkStore | None:
        """The store of this cycle."""
        if self._store is None:
            return None
        self.computed = now
        return ChunkStore(now, *self._store)

    def step(self, now: int, accepted: bool, arrived: bool) -> None:
        """A cycle: whether the read is accepted, and whether the data of a read arrive in it."""
        self._accepted, self._arrived, self._now, self._store = accepted, arrived, now, None
        next(self._cycles, None)

    def steps_end(self, now: int) -> bool:
        """Whether the job ends in this cycle: the array has no steps of it."""
        return self.ending(now)

    def finish(self, now: int, port: SidePortTimes, steps: bool = False) -> int:
        """Follow the job alone until it is `ending`; returns the cycle in which it is."""
        while not self.ending(now):
            store, arrived = self.stored(now), port.arrival(now)
            accepted = port.step(now, (self.read,), store and store.bank)
            self.step(now, accepted is not None, arrived is not None)
            now += 1
        return now

    def _run(self) -> Iterator[None]:
        """The cycles of the job; each continues when the ports have been served."""
        yield  # the cycle of the start
        yield from self._until(self._now + 1 + _PARAMETERS)
        for unit in range(self._job.columns):
            yield from self._unit(unit)

    def _unit(self, unit):
        """The cycles of a unit; its last store is in the cycle behind them."""
        scaled = _START + scale(self._network_core.array)
        for first in (self._fed, self._own):
            taken = yield from self._sums(first, unit)
        cell = self._cell + _CELL * unit // self._depth
        yield from self._vector(cell)
        gates = max(self._now + 1, taken + scaled + _PARTNER + LSTM_FUNCTION + 1)
        # Two products are a slot apart.
        update = gates + 1 + self._network_core.array.scale_cycles
        new = update + MAP_PRODUCT + scaled + _PARTNER
        yield from self._until(new + _WRITE)
        self._store = cell % self._network_core.banks, False
        yield from self._until(new + LSTM_FUNCTION + MAP_PRODUCT + scaled + _WRITE)
        output = self._output + unit // self._depth
        self._store = output % self._network_core.banks, unit == self._job.columns - 1

    def _sums(self, first, unit):
        """The cycles of the sums of a unit in one map; returns the last one."""
        for byte in range(_SUMS * unit, _SUMS * (unit + 1), 4):
            if byte == _SUMS * unit or not byte % self._depth:
                yield from self._vector(first + byte // self._depth)
            taken = max(self._now + 1, self._free)
            self._free = taken + self._network_core.array.scale_cycles
            yield from self._until(taken + 1)
        return taken

    def _until(self, cycle):
        """All cycles before ``cycle``."""
        while self._now + 1 < cycle:
            yield

    def _vector(self, number):
        """The cycles in which a vector is checked, requested and awaited."""
        yield
        self.read = number % self._network_core.banks
        yield
        while not self._accepted:
            yield
        self.read = None
        yield
        while not self._arrived:
            yield
