"""A simulated core for networks as a runner of lists, compared with the golden model."""

import numpy as np

from weft.chip.addresses import join
from weft.chip.descriptors import ListError
from weft.golden.chip.runner import LOG_BYTES
from weft.network.chip.golden_runner import GoldenRunner
from weft.network.chip.runner import ListReport

__all__ = ["NetworkDuel", "compare_memories", "log_vectors"]


def log_vectors(chip, jobs):
    """Vectors of the log of a list with so many jobs."""
    return -(-LOG_BYTES // chip.core.depth) * jobs


def compare_memories(chip, found, expected, log, jobs):
    """Compare all bytes except the log, whose times must be in order; returns the times.

    Parameters
    ----------
    chip : ChipConfig
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
        np.frombuffer(x, np.uint8).reshape(-1, chip.core.depth).copy() for x in (found, expected)
    )
    place = slice(log, log + log_vectors(chip, jobs))
    entries = found[place].reshape(jobs, log_vectors(chip, 1) * chip.core.depth)
    times = entries[:, :LOG_BYTES].copy().view("<u4").astype(np.int64)
    assert (np.diff(times.reshape(-1)) > 0).all(), times
    found[place] = expected[place]
    assert np.flatnonzero((found != expected).any(1)).tolist() == []
    return times


class NetworkDuel:
    """Executes each call on a `NetworkSimulation` and on the golden model.

    After each list, all bytes of the two memories are compared, and the outcomes.

    Parameters
    ----------
    core : NetworkSimulation

    Attributes
    ----------
    chip : ChipConfig
    times : list of int [jobs, 2]
        Start and last store of each job, for each list.
    cycles : list of int
        Of each list.
    """

    def __init__(self, core):
        self.chip = core.chip
        self.times, self.cycles = [], []
        self._core, self._golden = core, GoldenRunner(core.chip)
        core.write(self._golden.memory.tobytes())

    def write(self, address, data, **form):
        """Write bytes to both memories."""
        depth = self.chip.core.depth
        before = self._golden.memory.reshape(-1, depth).copy()
        self._golden.write(address, data, **form)
        after = self._golden.memory.reshape(-1, depth)
        changed = np.flatnonzero((before != after).any(1))
        if len(changed):
            first, last = changed[0], changed[-1]
            self._core.write(after[first : last + 1].tobytes(), int(first))

    def read(self, address, count) -> bytes:
        """Bytes of the simulated memory."""
        vectors = -(-count // self.chip.core.depth)
        return self._core.read(join(address, self.chip.banks), vectors)[:count]

    def run(self, list_address, log_address, *, timeout) -> ListReport:
        """Execute a list on both."""
        places = [join(address, self.chip.banks) for address in (list_address, log_address)]
        outcome = self._core.run(*places)
        report = self._golden.run(list_address, log_address, timeout=timeout)
        assert outcome.finished
        assert (outcome.error, outcome.job) == (report.error, report.jobs)
        found = self._core.read()
        self.times.append(compare_memories(
            self.chip, found, self._golden.memory, places[1], report.jobs
        ))
        # The golden memory takes the log over.
        self._golden.memory[:] = np.frombuffer(found, np.uint8)
        self.cycles.append(outcome.cycles)
        result = b""
        if report.error == ListError.NONE:
            first = outcome.result * self.chip.core.depth
            result = found[first : first + outcome.result_bytes]
            assert result == report.result
        return ListReport(outcome.error, outcome.job, result, outcome.cycles)

    def close(self):
        """Leave the simulation open: its user closes it."""
