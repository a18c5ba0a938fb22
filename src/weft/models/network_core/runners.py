"""`NetworkCoreRunner`, the interface of a network core, and `GoldenRunner`, one in NumPy."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from weft.golden.network_core import NetworkCoreBuffers, run_list, write_pixels
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.descriptors import ListReport, join

__all__ = ["GoldenRunner", "NetworkCoreRunner"]


class NetworkCoreRunner(Protocol):
    """A network core: `weft.host.network_driver.NetworkDriver`, or a model.

    Addresses are the addresses of lists (`weft.network_core.descriptors`), relative to BASE or to
    the start of the program memory.

    Methods raise `weft.host.transport.TransportError` if the connection fails.

    Attributes
    ----------
    config : NetworkCoreConfig
    program_bytes : int
        Bytes of the program memory, if the core has one. It may be smaller than the core allows.
    uses : int
        How often `write`, `write_program` or `run` were called. Who keeps values in the core
        compares it with the number after its own last call: if they differ, others used the core.
    """

    config: NetworkCoreConfig
    program_bytes: int
    uses: int

    def write(
        self, address: int, data: bytes, *, run: int = 0, pitch: int = 0, pixels: int = 0,
        row_step: int = 0,
    ) -> None:
        """Write bytes to the memory.

        With ``run`` 0 the data are whole vectors that follow each other. Otherwise they are rows of
        ``pixels`` pixels of ``run`` bytes; pixels are ``pitch`` vectors apart, and ``row_step`` is
        the address step from the last pixel of a row to the next row. The rest of the last vector
        of a pixel becomes 0. Data may have any length: a driver divides them into frames.
        """

    def read(self, address: int, count: int) -> bytes:
        """Return ``count`` bytes of the memory, from the first one of a vector on."""

    def write_program(self, address: int, data: bytes) -> None:
        """Write whole vectors to the program memory; only if the core has one."""

    def read_program(self, address: int, count: int) -> bytes:
        """Return ``count`` bytes of the program memory; only if the core has one."""

    def run(
        self, list_address: int, log_address: int, *, timeout: float,
        beside: Callable[[], None] | None = None, writes: Iterable[Mapping[str, Any]] = (),
    ) -> ListReport:
        """Execute a list after ``writes``, and wait at most ``timeout`` seconds for its end.

        While it runs, ``beside`` is called, which may write and read memory that the list does not
        use. If it raises an exception, the list is aborted. ``writes`` are arguments of `write`;
        nothing waits for an answer between them and the list.
        """

    def close(self) -> None:
        """Close the connection."""


class GoldenRunner:
    """A network core in numpy, with the methods of `NetworkCoreRunner`.

    Its memory is not zero at the start, so that nothing depends on that.

    Parameters
    ----------
    config : NetworkCoreConfig
    eager : bool
        Execute each load as early as its list allows, otherwise as late as it allows. The results
        of a correct list are the same.
    """

    def __init__(self, config: NetworkCoreConfig, *, eager: bool = True):
        self.config = config
        self.uses = 0
        self.memory = np.full(config.memory_bytes, 0x5A, np.uint8)
        self.program_bytes = config.program_bytes
        self.program = np.full(self.program_bytes, 0x5A, np.uint8)
        self._buffers = NetworkCoreBuffers(config)
        self._eager = eager

    def write(self, address, data, *, run=0, pitch=0, pixels=0, row_step=0) -> None:
        """Write bytes to the memory."""
        self.uses += 1
        first, step = (join(value, self.config.banks) for value in (address, row_step))
        if self.config.resident and first >= self.config.region:
            self._buffers.write(first, data)
            return
        write_pixels(
            self.memory.reshape(-1, self.config.array.depth), first, data, run=run, pitch=pitch,
            pixels=pixels, row_step=step,
        )

    def read(self, address, count) -> bytes:
        """Return ``count`` bytes of the memory."""
        first = self._byte(address)
        return self.memory[first : first + count].tobytes()

    def write_program(self, address, data) -> None:
        """Write bytes to the program memory."""
        self.uses += 1
        first = self._byte(address)
        self.program[first : first + len(data)] = np.frombuffer(data, np.uint8)

    def read_program(self, address, count) -> bytes:
        """Return ``count`` bytes of the program memory."""
        first = self._byte(address)
        return self.program[first : first + count].tobytes()

    def run(self, list_address, log_address, *, timeout, beside=None, writes=()) -> ListReport:
        """Execute a list after ``writes``; an ``eager`` one ends before ``beside`` is called."""
        self.uses += 1
        for write in writes:
            self.write(**write)
        if beside and not self._eager:
            beside()
        outcome = run_list(
            self.config, self.memory, list_address, log_address, buffers=self._buffers,
            eager=self._eager, program=self.program,
        )
        if beside and self._eager:
            beside()
        return ListReport(outcome.error, outcome.jobs, outcome.result)

    def _byte(self, address):
        return join(address, self.config.banks) * self.config.array.depth

    def close(self) -> None:
        """Do nothing: there is no connection."""
