"""Descriptors for the DMA engine, the memory they work on, and what it must hold in the end."""

import random

from weft.commands import Job, JobFlag, Load, LoadFlag, Status, result
from weft.descriptors import ElementOrder, Fetch, Store, write_unit
from weft.sim.scenario import Scenario

__all__ = ["DmaProgram"]

NONE = LoadFlag(0)


class DmaProgram(Scenario):
    """A `Scenario` whose operands lie in memory, anyhow, and whose results are to go there.

    Each operand gets an order, a place and a stride by chance, all bytes between them too.

    Parameters
    ----------
    config : Config
    size : int
        Bytes of the memory, from address 0 on.
    orders : tuple of `ElementOrder`
        That operands may lie in.

    Attributes
    ----------
    memory : bytearray
        As it is to be before.
    expected : bytearray
        ... and to be when all has ended.
    descriptors : list of bytes
    ends : list of tuple
        Tag and status of each job that says so, in order.
    """

    def __init__(self, config, *, size, seed, orders=(ElementOrder.K_MAJOR, ElementOrder.K_MINOR)):
        super().__init__(config)
        self.rng = random.Random(seed)
        self.orders = orders
        self.memory = bytearray(self.rng.randbytes(size))
        self.expected = bytearray(self.memory)
        self.descriptors = []
        self.ends = []
        self._free = 0
        self._raw = None  # the load whose payload is being sent, its address
        self._target = None  # where the results of the latest job go

    def load(self, side, lines, page=0, flags=NONE):
        """As of `Scenario`; its panels are for the engine to pack."""
        self._close()
        depth, size = self.config.depth, self.config.format.a.bytes
        edge = (self.config.rows, self.config.cols)[side]
        count, k = lines.shape
        words = -(-k // depth)
        load = Load(side, page, -(-words // 16), -(-count // edge), words, flags)
        order = self.rng.choice(self.orders)
        whole = lines if order == ElementOrder.K_MAJOR else lines.T
        stride = (whole.shape[1] + self.rng.choice([0, 1, 5])) * size
        address = self._take(stride * len(whole), self.rng.choice([0, 1, 13, 30]) * size)
        if self.rng.random() < 0.2:  # from the last row to the first
            whole, step = whole[::-1], -stride
            first = address + stride * (len(whole) - 1)
        else:
            step, first = stride, address
        for n, row in enumerate(whole):
            self._put(address + n * stride, row.tobytes())
        self.descriptors.append(Fetch(load, first, step, count, k, order).pack())

    def end(self):
        """All that is to be done is there."""
        self._close()

    def _take(self, size, offset=0):
        """A place of ``size`` bytes, ``offset`` bytes behind a multiple of 64."""
        start = self._free + offset
        self._free = -(-(start + size) // 64) * 64
        if self._free > len(self.memory):
            raise ValueError(f"a memory of {len(self.memory)} bytes must be enough for the program")
        return start

    def _put(self, address, data):
        self.memory[address : address + len(data)] = data
        self.expected[address : address + len(data)] = data

    def _header(self, command):
        self._close()
        if isinstance(command, Load):
            self._raw = command, bytearray()
            return
        self._job(command)

    def _send(self, data):
        self._raw[1].extend(data + bytes(-len(data) % self.config.bytes_in))

    def _close(self):
        if self._raw is None:
            return
        load, payload = self._raw
        address = self._take(len(payload))
        self._put(address, bytes(payload))
        self.descriptors.append(Fetch(load, address, order=ElementOrder.PACKED).pack())
        self._raw = None

    def _job(self, job: Job):
        size = result(self.config, job.flags).bytes
        least = write_unit(self.config, job.flags)
        stride = (-(-job.n * size // least) + self.rng.choice([0, 1, 3])) * least
        address = self._take(stride * job.m, self.rng.choice([0, 1, 2, 5]) * least)
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
        address, stride = self._target
        for n, row in enumerate(results):
            data = b"".join(
                (int(value) & (1 << 8 * size) - 1).to_bytes(size, "little") for value in row
            )
            self.expected[address + n * stride : address + n * stride + len(data)] = data
        return []
