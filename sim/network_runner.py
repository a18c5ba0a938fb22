"""A simulated network core as a runner of lists, for sessions."""

import numpy as np

from weft.host.transport import TransportTimeout
from weft.network_core.config import NetworkCoreConfig
from weft.network_core.cycles import ProgramTiming
from weft.network_core.descriptors import ListError, join
from weft.network_core.report import ListReport
from weft.sim.network_core import AxiTiming, NetworkSimulation

__all__ = ["SimulatedRunner"]

_CYCLES_PER_SECOND = 100_000  # at least, of any model on any machine


class SimulatedRunner:
    """A Verilated network core, at the ports of its memory.

    It has the methods of `weft.host.network_driver.NetworkDriver` that a session uses. A program
    memory has the default timing of the cycle model, until `set_timing` changes it.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    program_base : int
        First byte of the program memory behind AXI4; 0 at first.
    """

    def __init__(self, config: NetworkCoreConfig):
        self.config = config
        self.program_base = 0
        self._core = NetworkSimulation(config)
        if config.program_words:
            timing = ProgramTiming()
            self.set_timing(AxiTiming(timing.latency, timing.period))

    def write(self, address, data, *, run=0, pitch=0, pixels=0, row_step=0) -> None:
        """Write bytes to the memory."""
        depth, banks = self.config.array.depth, self.config.banks
        first = join(address, banks)
        if not run:
            self._core.write(bytes(data), first)
            return
        size = -(-run // depth)
        row = join(row_step, banks) + (pixels - 1) * pitch
        values = np.frombuffer(data, np.uint8).reshape(-1, pixels, run)
        values = np.pad(values, ((0, 0), (0, 0), (0, size * depth - run)))
        if pitch == size:
            for y, line in enumerate(values):
                self._core.write(line.tobytes(), first + y * row)
            return
        for y, line in enumerate(values):
            for x, pixel in enumerate(line):
                self._core.write(pixel.tobytes(), first + y * row + x * pitch)

    def read(self, address, count) -> bytes:
        """Return ``count`` bytes of the memory."""
        depth = self.config.array.depth
        return self._core.read(join(address, self.config.banks), -(-count // depth))[:count]

    def write_program(self, address, data) -> None:
        """Write bytes to the program memory."""
        self._core.write_program(bytes(data), self._byte(address))

    def read_program(self, address, count) -> bytes:
        """Return ``count`` bytes of the program memory."""
        return self._core.read_program(self._byte(address), count)

    def set_timing(self, timing: AxiTiming) -> None:
        """Set the behaviour of the memory behind AXI4."""
        self._core.set_timing(timing)

    def _byte(self, address):
        return self.program_base + join(address, self.config.banks) * self.config.array.depth

    def run(self, list_address, log_address, *, timeout) -> ListReport:
        """Execute a list; ``timeout`` limits its cycles, too.

        Raises TransportTimeout if the list has not ended then.
        """
        banks, limit = self.config.banks, max(1, int(timeout * _CYCLES_PER_SECOND))
        outcome = self._core.run(
            join(list_address, banks), join(log_address, banks), cycles=limit,
            program_base=self.program_base,
        )
        if not outcome.finished:
            raise TransportTimeout(f"the list did not end within {limit:,} cycles")
        result = b""
        if outcome.error == ListError.NONE and outcome.result_bytes:
            vectors = -(-outcome.result_bytes // self.config.array.depth)
            result = self._core.read(outcome.result, vectors)[: outcome.result_bytes]
        return ListReport(outcome.error, outcome.job, result, outcome.cycles)

    def close(self) -> None:
        """End the simulation."""
        self._core.__exit__()
