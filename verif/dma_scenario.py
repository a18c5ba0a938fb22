"""Descriptors for the DMA engine, with the memory before they run and after."""

import random

from weft.commands import Job, JobFlag, Load, LoadFlag, Status, result
from weft.descriptors import ElementOrder, Fetch, Store, write_unit
from weft.sim.scenario import Scenario

__all__ = ["DmaScenario"]

NO_FLAGS = LoadFlag(0)


class DmaScenario(Scenario):
    """A `Scenario` with operands and results in memory.

    Each operand has a random order, address and stride. All other bytes are random too.

    Parameters
    ----------
    config : Config
    size : int
        Bytes of the memory, which starts at address 0.
    seed : int
    orders : tuple of `ElementOrder`
        Orders that operands may have.

    Attributes
    ----------
    memory : bytearray
        Contents before the descriptors run.
    expected : bytearray
        Contents after all jobs have ended.
    descriptors : list of bytes
    ends : list of tuple
        Tag and status of each job whose end is reported, in order.
    """

    def __init__(self, config, *, size, seed, orders=(ElementOrder.K_MAJOR, ElementOrder.K_MINOR)):
        super().__init__(config)
        self.rng = random.Random(seed)
        self.orders = orders
        self.memory = bytearray(self.rng.randbytes(size))
        self.expected = bytearray(self.memory)
        self.descriptors = []
        self.ends = []
        self._next_free = 0
        self._packed = None  # the load whose payload is being collected, and the payload
        self._target = None  # address and stride of the latest job's results

    def load(self, side, lines, page=0, flags=NO_FLAGS):
        """As of `Scenario`; the engine packs the panels."""
        self._finish_load()
        depth, size = self.config.depth, self.config.data_type.a.bytes
        edge = (self.config.rows, self.config.cols)[side]
        count, k = lines.shape
        words = -(-k // depth)
        load = Load(side, page, -(-words // 16), -(-count // edge), words, flags)
        order = self.rng.choice(self.orders)
        matrix = lines if order == ElementOrder.K_MAJOR else lines.T
        stride = (matrix.shape[1] + self.rng.choice([0, 1, 5])) * size
        start = self._allocate(stride * len(matrix), self.rng.choice([0, 1, 13, 30]) * size)
        address = start
        if self.rng.random() < 0.2:  # from the last row to the first
            matrix = matrix[::-1]
            address, stride = start + stride * (len(matrix) - 1), -stride
        for n, row in enumerate(matrix):
            self._put(start + n * abs(stride), row.tobytes())
        self.descriptors.append(Fetch(load, address, stride, count, k, order).pack())

    def end(self):
        """Finish the last load; call it after the last command."""
        self._finish_load()

    def _allocate(self, size, offset=0):
        """Address of ``size`` free bytes, ``offset`` bytes after a multiple of 64."""
        start = self._next_free + offset
        self._next_free = -(-(start + size) // 64) * 64
        if self._next_free > len(self.memory):
            raise ValueError(
                f"memory of {len(self.memory)} bytes must hold the whole scenario, and is full"
            )
        return start

    def _put(self, address, data):
        self.memory[address : address + len(data)] = data
        self.expected[address : address + len(data)] = data

    def _header(self, command):
        self._finish_load()
        if isinstance(command, Load):
            self._packed = command, bytearray()
            return
        self._job(command)

    def _send(self, data):
        self._packed[1].extend(data + bytes(-len(data) % self.config.bytes_in))

    def _finish_load(self):
        """Add the descriptor of the load whose payload is complete."""
        if self._packed is None:
            return
        load, payload = self._packed
        address = self._allocate(len(payload))
        self._put(address, bytes(payload))
        self.descriptors.append(Fetch(load, address, order=ElementOrder.PACKED).pack())
        self._packed = None

    def _job(self, job: Job):
        size = result(self.config, job.flags).bytes
        unit = write_unit(self.config, job.flags)
        stride = (-(-job.n * size // unit) + self.rng.choice([0, 1, 3])) * unit
        address = self._allocate(stride * job.m, self.rng.choice([0, 1, 2, 5]) * unit)
        self._target = address, stride
        self.descriptors.append(Store(job, address, stride).pack())
        if JobFlag.KEEP not in job.flags:
            self.ends.append((job.tag, Status(0)))

    def reject(self, tag=0, **fields):
        """As of `Scenario`."""
        super().reject(tag, **fields)
        if JobFlag.KEEP not in fields.get("flags", JobFlag(0)):
            self.ends.pop()
        self.ends.append((tag, Status.REJECTED))

    def _results(self, results, size):
        """Put the results into the expected memory; the core's words are not checked."""
        address, stride = self._target
        for n, row in enumerate(results):
            data = b"".join(
                (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little") for value in row
            )
            self.expected[address + n * stride : address + n * stride + len(data)] = data
        return []
