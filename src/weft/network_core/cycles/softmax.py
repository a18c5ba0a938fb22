"""Jobs with the flag ``softmax`` in the cycle model of lists."""

from collections.abc import Iterator

from weft.latencies import MEMORY_READ
from weft.network_core.cycles.memory import SidePortTimes
from weft.network_core.cycles.output import ChunkStore
from weft.network_core.cycles.tiles import MapPlaces
from weft.network_core.latencies import DELIVERY, SIDE_READ, scale, softmax_reciprocal

__all__ = ["SoftmaxLayer", "softmax_cycles"]

_LOOKUP = 1 + MEMORY_READ  # from a value to its exponential
_WRITE = 1  # from a result to its write
_READ = 2 + 1 + SIDE_READ + DELIVERY  # of a vector: its check, its request, its arrival


def softmax_cycles(config, columns: int, pixels: int) -> int:
    """Return the cycles of pixels whose reads never wait."""
    array = config.array
    vectors = -(-columns // array.depth)
    maximum = 1 + vectors * (_READ + 1) + columns
    total = 1 + vectors * (_READ + 1 + _LOOKUP) + columns
    # The first vector is read while the reciprocal is computed.
    results = (vectors - 1) * _READ + (columns - vectors) * array.scale_cycles
    results += vectors * (1 + _LOOKUP + scale(array) + _WRITE)
    return pixels * (maximum + total + softmax_reciprocal(array) + results)


class SoftmaxLayer:
    """`weft.hw.network_core.output.softmax.Softmax`, cycle by cycle.

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
        self._input, self._output = (MapPlaces(config, job, map_) for map_ in ("input", "output"))
        self._pixels = job.out_height * job.out_width
        self._pixel = self._byte = 0  # the value that is taken
        self._accepted = self._arrived = False
        self._stores = False
        self._cycles = self._run()
        next(self._cycles)
        self.read: int | None = None
        self.computed = 0

    def ending(self, now: int) -> bool:
        """Whether the next job may start in the next cycle."""
        last = self._pixel == self._pixels - 1 and self._byte == self._job.columns - 1
        return self._stores and last

    def stored(self, now: int) -> ChunkStore | None:
        """The store of this cycle."""
        if not self._stores:
            return None
        self.computed = now
        return ChunkStore(now, self._output.bank(self._pixel, self._byte), self.ending(now))

    def step(self, now: int, accepted: bool, arrived: bool) -> None:
        """A cycle: whether the read is accepted, and whether the data of a read arrive in it."""
        self._accepted, self._arrived = accepted, arrived
        next(self._cycles, None)

    def steps_end(self, now: int) -> bool:
        """Whether the job ends in this cycle: the array has no steps of it."""
        return self.ending(now)

    def finish(self, now: int, port: SidePortTimes, steps: bool = False) -> int:
        """Follow the job alone until it is `ending`; returns the cycle in which it is."""
        pixel = self._pixel
        while not self.ending(now):
            store = self.stored(now)
            arrived = port.arrival(now)
            accepted = port.step(now, (self.read,), store and store.bank)
            self.step(now, accepted is not None, arrived is not None)
            now += 1
            if self._pixel != pixel:
                # A read never waits for a store of the job, so this pixel and all after it take
                # the same cycles.
                alike = self._pixels - 1 - self._pixel
                now += softmax_cycles(self._network_core, self._job.columns, alike)
                pixel = self._pixel = self._pixels - 1
        return now

    def _run(self) -> Iterator[None]:
        """The cycles of the job; each continues when the ports have been served."""
        yield  # the cycle of the start
        for pixel in range(self._pixels):
            self._pixel = pixel
            yield from self._pass(0)
            yield from self._pass(_LOOKUP)
            yield from self._results()

    def _pass(self, last):
        """The cycles of a pass that stores nothing; ``last``: from a value to its use."""
        yield
        for values in self._vectors():
            yield from self._vector()
            for _ in range(values + last + 1):
                yield

    def _results(self):
        """The cycles of the pass that stores results, which begins beside the reciprocal."""
        array = self._network_core.array
        slot, last = array.scale_cycles, _LOOKUP + scale(array) + _WRITE
        left = softmax_reciprocal(array)  # cycles to the first value
        for _ in range(3):
            left -= 1
            yield
        for values in self._vectors():
            for _ in self._vector():
                left -= 1
                yield
            for _ in range(left):
                yield
            left = 0
            first = self._byte
            for cycle in range((values - 1) * slot + last + 1):
                value, rest = divmod(cycle - last, slot)
                self._stores = value >= 0 and not rest
                self._byte = first + max(0, value)
                yield
            self._stores = False

    def _vectors(self):
        """Move to each vector of the pixel; the number of its values."""
        for byte in range(0, self._job.columns, self._depth):
            self._byte = byte
            yield min(self._depth, self._job.columns - byte)

    def _vector(self):
        """The cycles in which a vector is checked, requested and awaited."""
        yield
        self.read = self._input.bank(self._pixel, self._byte)
        yield
        while not self._accepted:
            yield
        self.read = None
        yield
        while not self._arrived:
            yield
