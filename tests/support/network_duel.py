"""A simulated network core as a runner of lists, compared with the golden model."""

from dataclasses import replace

import numpy as np

from weft.golden.network_core.runner import LOG_BYTES
from weft.models.network_core.runners import GoldenRunner
from weft.network_core.descriptors import ListReport, join
from weft.sim.network_core import SimulatedRunner

__all__ = ["NetworkDuel", "compare_memories", "log_vectors"]


def log_vectors(config, jobs):
    """Vectors of the log of a list with so many jobs."""
    return -(-LOG_BYTES // config.array.depth) * jobs


def compare_memories(config, found, expected, log, jobs):
    """Compare all bytes except the log, whose times must be in order; returns the times.

    Parameters
    ----------
    config : NetworkCoreConfig
    found, expected : bytes or uint8 [memory_bytes]
    log : int
        First vector of the log, absolute.
    jobs : int

    Returns
    -------
    int [jobs, 2]
        Start and last store of each job.
    """
    found, expected = (
        np.frombuffer(x, np.uint8).reshape(-1, config.array.depth).copy() for x in (found, expected)
    )
    place = slice(log, log + log_vectors(config, jobs))
    entries = found[place].reshape(jobs, log_vectors(config, 1) * config.array.depth)
    times = entries[:, :LOG_BYTES].copy().view("<u4").astype(np.int64)
    assert (np.diff(times.reshape(-1)) > 0).all(), times
    found[place] = expected[place]
    assert np.flatnonzero((found != expected).any(1)).tolist() == []
    return times


class NetworkDuel:
    """Executes each call on a simulated core and on the golden model, as a runner of lists.

    After each list, all bytes of the two memories are compared, and the outcomes.

    Parameters
    ----------
    config : NetworkCoreConfig

    Attributes
    ----------
    times : list of int [jobs, 2]
        Start and last store of each job, for each list.
    cycles : list of int
        Of each list.
    """

    def __init__(self, config):
        self.config = config
        self.times, self.cycles = [], []
        self._core, self._golden = SimulatedRunner(config), GoldenRunner(config)
        self._core.write(0, self._golden.memory.tobytes())

    @property
    def uses(self):
        """Calls that changed the simulated core."""
        return self._core.uses

    def write(self, address, data, **form):
        """Write bytes to both memories."""
        self._core.write(address, data, **form)
        self._golden.write(address, data, **form)

    def read(self, address, count) -> bytes:
        """Bytes of the simulated memory."""
        return self._core.read(address, count)

    def run(self, list_address, log_address, *, timeout, beside=None, writes=()) -> ListReport:
        """Execute a list on both after ``writes``, and then call ``beside``."""
        for write in writes:
            self.write(**write)
        report = self._core.run(list_address, log_address, timeout=timeout)
        expected = self._golden.run(list_address, log_address, timeout=timeout)
        assert replace(report, cycles=None) == expected
        found = self._core.read(0, self.config.memory_bytes)
        log = join(log_address, self.config.banks)
        memory = self._golden.memory
        self.times.append(compare_memories(self.config, found, memory, log, report.jobs))
        memory[:] = np.frombuffer(found, np.uint8)  # the golden model writes no log
        self.cycles.append(report.cycles)
        if beside:
            beside()
        return report

    def close(self):
        """End the simulation."""
        self._core.close()
