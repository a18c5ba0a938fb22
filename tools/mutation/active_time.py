"""Measures the time that processes compute or sleep, without the time they wait for a processor.

So a time limit also works on a busy machine.
"""

import os
from pathlib import Path

__all__ = ["ActiveTime"]

TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
# Indices of the fields of /proc/PID/stat after the name.
STATE, PARENT, USED = 0, 1, slice(11, 15)


class ActiveTime:
    """The seconds that a process and its descendants computed or slept.

    Without ``/proc`` all time counts.

    Parameters
    ----------
    pid : int
        The process.
    proc : Path

    Attributes
    ----------
    spent : float
        Seconds since the last `reset`.
    """

    def __init__(self, pid: int, proc: Path = PROC):
        self.pid, self.proc, self.spent = pid, proc, 0.0
        self._used = 0.0

    def reset(self):
        """Start again from 0, because the process has made progress."""
        self.spent = 0.0

    def add(self, seconds: float):
        """Account for the ``seconds`` since the last call."""
        family = self._family()
        used = sum(sum(map(int, stat[USED])) for stat in family) / TICKS
        ready = any(stat[STATE] in "RD" for stat in family)
        # The time of an ended process is missing until its parent has waited for it.
        self.spent += min(seconds, max(0.0, used - self._used)) if ready else seconds
        self._used = used

    def _family(self):
        """The fields of /proc/PID/stat of the process and its descendants."""
        stats = {}
        for path in self.proc.glob("[0-9]*/stat"):
            try:
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError:  # the process has ended
                continue
            stats[int(path.parent.name)] = text.rpartition(")")[2].split()
        family, size = {self.pid}, 0
        while len(family) != size:
            size = len(family)
            family |= {pid for pid, stat in stats.items() if int(stat[PARENT]) in family}
        return [stats[pid] for pid in family if pid in stats]
