"""The golden model of a network core, as a runner of lists."""

import numpy as np

from weft.golden.network_core import NetworkCoreBuffers, run_list, write_pixels
from weft.network_core.addresses import join
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.report import ListReport

__all__ = ["GoldenRunner"]


class GoldenRunner:
    """A network core in numpy; `weft.models.network_core.runner.NetworkCoreRunner` has its methods.

    Its memory is not zero at the start, so that nothing depends on that.

    Parameters
    ----------
    config : NetworkCoreConfig
    eager : bool
        As for `weft.golden.network_core.run_list`.
    """

    def __init__(self, config: NetworkCoreConfig, *, eager: bool = True):
        self.config = config
        self.memory = np.full(config.memory_bytes, 0x5A, np.uint8)
        self.program_bytes = config.program_bytes
        self.program = np.full(self.program_bytes, 0x5A, np.uint8)
        self._buffers = NetworkCoreBuffers(config)
        self._eager = eager

    def write(self, address, data, *, run=0, pitch=0, pixels=0, row_step=0) -> None:
        """Write bytes to the memory."""
        first, step = (join(value, self.config.banks) for value in (address, row_step))
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
        first = self._byte(address)
        self.program[first : first + len(data)] = np.frombuffer(data, np.uint8)

    def read_program(self, address, count) -> bytes:
        """Return ``count`` bytes of the program memory."""
        first = self._byte(address)
        return self.program[first : first + count].tobytes()

    def run(self, list_address, log_address, *, timeout) -> ListReport:
        """Execute a list."""
        outcome = run_list(
            self.config, self.memory, list_address, log_address, buffers=self._buffers,
            eager=self._eager, program=self.program,
        )
        return ListReport(outcome.error, outcome.jobs, outcome.result)

    def _byte(self, address):
        return join(address, self.config.banks) * self.config.array.depth

    def close(self) -> None:
        """Do nothing: there is no connection."""
