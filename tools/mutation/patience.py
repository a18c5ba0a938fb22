"""Measures how long processes compute or sleep, without the time they wait for a processor.

So a limit holds on a machine that is busy with other work, too.
"""

import os
from pathlib import Path

__all__ = ["Patience"]

TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
# Members of /proc/PID/stat behind the name.
STATE, PARENT, USED = 0, 1, slice(11, 15)


class Patience:
    """Seconds that a process and its descendants computed or slept.

    Where the system has no ``/proc``, all time counts.

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
        """Begin anew: something has been done."""
        self.spent = 0.0

    def passed(self, seconds: float):
        """Take note that so many seconds have passed since the last call."""
        family = self._family()
        used = sum(sum(map(int, stat[USED])) for stat in family) / TICKS
        ready = any(stat[STATE] in "RD" for stat in family)
        # Those that end take their time with them, until their parent has waited for them.
        self.spent += min(seconds, max(0.0, used - self._used)) if ready else seconds
        self._used = used

    def _family(self):
        """What the system says of the process and of its descendants."""
        stats = {}
        for path in self.proc.glob("[0-9]*/stat"):
            try:
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError:  # it has ended
                continue
            stats[int(path.parent.name)] = text.rpartition(")")[2].split()
        family, size = {self.pid}, 0
        while len(family) != size:
            size = len(family)
            family |= {pid for pid, stat in stats.items() if int(stat[PARENT]) in family}
        return [stats[pid] for pid in family if pid in stats]
