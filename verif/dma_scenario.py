"""Descriptors for the DMA engine, with the memory before they run and after."""

import random

from weft.commands import Job, Region, result
from weft.descriptors import ElementOrder, Fetch, Store, write_unit
from weft.sim.scenario import Scenario

__all__ = ["DmaScenario"]


class DmaScenario(Scenario):
    """A `Scenario` with operands and results in memory.

    Each operand has a random order, address and stride. All other bytes are random too.

    Parameters
    ----------
    config : Config
    size : int
        Bytes of the memory, which starts at address 0.
    seed : int

    Attributes
    ----------
    orders : tuple of `ElementOrder`
        Orders that operands may have.
    memory : bytearray
        Contents before the descriptors run.
    expected : bytearray
        Contents after all jobs have ended.
    descriptors : list of bytes
    ends : list of tuple
        Tag and status of each job whose end is reported, in order.
    """

    def __init__(self, config, *, size, seed):
        super().__init__(config, seed)
        self.layout = random.Random(seed)
        self.orders = (ElementOrder.K_MAJOR, ElementOrder.K_MINOR)
        self.memory = bytearray(self.layout.randbytes(size))
        self.expected = bytearray(self.memory)
        self.descriptors = []
        self.ends = []
        self._next_free = 0
        self._target = None  # address and stride of the latest job's results

    def load_lines(self, load, matrix):
        """As of `Scenario`; the engine packs the panels of A and B."""
        if load.operand not in (Region.A, Region.B):
            super().load_lines(load, matrix)
            return
        size = self.config.data_type.a.bytes
        count, k = matrix.shape
        order = self.layout.choice(self.orders)
        rows = matrix if order == ElementOrder.K_MAJOR else matrix.T
        stride = (rows.shape[1] + self.layout.choice([0, 1, 5])) * size
        start = self._allocate(stride * len(rows), self.layout.choice([0, 1, 13, 30]) * size)
        address = start
        if self.layout.random() < 0.2:  # from the last row to the first
            address, stride = start + stride * (len(rows) - 1), -stride
        for n, row in enumerate(rows):
            self._put(address + n * stride, row.tobytes())
        self.descriptors.append(Fetch(load, address, stride, count, k, order).pack())

    def load_payload(self, load, payload):
        """As of `Scenario`."""
        address = self._allocate(len(payload))
        self._put(address, payload)
        self.descriptors.append(Fetch(load, address, order=ElementOrder.PACKED).pack())

    def submit(self, job: Job):
        """As of `Scenario`, with a random address and stride of the results."""
        size = result(self.config, job.flags).bytes
        unit = write_unit(self.config, job.flags)
        stride = (-(-job.n * size // unit) + self.layout.choice([0, 1, 3])) * unit
        address = self._allocate(stride * job.m, self.layout.choice([0, 1, 2, 5]) * unit)
        self._target = address, stride
        self.descriptors.append(Store(job, address, stride).pack())

    def expect(self, results, statuses):
        """Put the results into the expected memory; the core's words are not checked."""
        (status,) = statuses
        self.ends.append((self._tag, status))
        address, stride = self._target
        for n, row in enumerate(results):
            data = row.tobytes()
            self.expected[address + n * stride : address + n * stride + len(data)] = data

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
