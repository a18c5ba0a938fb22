"""The units of a core that a microprogram controls: when they are ready for the program."""

from weft.network_core import latencies
from weft.network_core.descriptors import LoadTarget
from weft.network_core.microcode import Out
from weft.network_core.microcode import instructions as micro

__all__ = ["UnitTimes"]

_ADD, _SUMS = 1 << 9, 1 << 10  # of the flags of a job


class UnitTimes:
    """The load unit, the step unit and the output unit, tile by tile.

    A method tells in which cycle its instruction, which comes in cycle ``now``, is complete.

    A tile waits until the vector of the added map that belongs to the tile before was read: after
    the last byte of the vector before was taken. Steps and stores have other cycles than these
    reads. Other reads come before the last request of their tile, so no tile waits for them.

    Parameters
    ----------
    config : NetworkCoreConfig
    ports : list of int
        The values of all `Out` ports.

    Attributes
    ----------
    last_step : int
        The cycle of the last step of the last tile.
    """

    def __init__(self, config, ports):
        self._network_core, self._core, self._ports = config, config.array, ports
        self.last_step = -1
        self._first = False  # the next tile is the first one of its pixel
        self._output_free = 0  # the output unit needs the output address no more
        self._may_end = 0  # the last step of the next tile can be decided on
        self._result = 0  # the last result of the last tile
        self._taken = 0  # the last byte of its added vector

    def load(self, now: int) -> int:
        """A load, whose last write is `LOAD_END` cycles before."""
        ports, target = self._ports, self._ports[Out.LOAD_TARGET] & 0xFF
        diagonal = ports[Out.LOAD_FLAGS] >> 8 & 1
        vectors = {
            LoadTarget.B: 1 if diagonal else self._core.cols,
            LoadTarget.PARAMETERS: self._network_core.line_vectors,
            LoadTarget.ADD_TABLE: self._network_core.add_table_vectors,
        }[LoadTarget(target)]
        return now + micro.LOAD_VECTOR * vectors * ports[Out.LOAD_WORDS] + micro.LOAD_END

    def start(self, now: int) -> None:
        """A job starts."""
        ports = self._ports
        kernel = ports[Out.KERNEL]
        self._steps = (kernel & 0xFF) * (kernel >> 8) * ports[Out.TAP_VECTORS]
        self._slot = now + micro.SLOT

    def set_flags(self, flags: int) -> None:
        """The flags of the job, which follow its start."""
        core = self._core
        self._add = bool(flags & _ADD)
        slots, latency = 1, latencies.rescale(core, self._add)
        if self._add:
            slots = 2
        elif flags & _SUMS:
            slots, latency = 4, latencies.join(core) + micro.SUMS
        self._interval, self._latency = slots * core.scale_cycles, latency

    def output(self, now: int) -> int:
        """A pixel begins."""
        self._first = True
        return max(now, self._output_free)

    def tile(self, now: int, columns: int) -> int:
        """A tile begins, with so many columns to come."""
        start = max(now, self.last_step + 1)
        # The last step is decided on a cycle before it.
        decided = start + micro.TILE_START + micro.STEP * (self._steps - 1) - 1
        self.last_step = max(decided, self._may_end) + 1
        self._request(self.last_step + micro.CAPTURE, min(columns, self._core.cols))
        return start

    def drain(self, now: int) -> int:
        """All results of a job are stored."""
        return max(now, self._result + micro.STORE + micro.DRAIN)

    def _request(self, captured, columns):
        """The requests of a tile, whose sums are held after a cycle."""
        waits = (self._slot - captured - 1) % self._interval
        first = captured + 1 + waits
        last = first + (columns - 1) * self._interval
        if self._first:
            self._first, self._output_free = False, first + self._latency + 1
        self._may_end, self._result = last + 1, last + self._latency
        if self._add:
            self._may_end = max(self._may_end, self._taken + micro.ADDED_READ + 1)
            self._taken = last + latencies.added_take(self._core)
