"""The jobs that a core rejects, for its models; the hardware has its own implementation."""

from weft.commands import Job, JobFlag, supported_flags
from weft.config import Config
from weft.geometry import operands

__all__ = ["JobRules"]


class JobRules:
    """Decides which jobs a core of ``config`` rejects, by ``docs/interfaces.md``."""

    def __init__(self, config: Config):
        a, b = operands(config)
        self._limits = (a.pages * a.edge, b.pages * b.edge, min(a.words, b.words) * a.depth)
        self._pass = (a.edge, config.cell.slots * b.edge)  # rows and columns of a pass
        self._flags = int(supported_flags(config))

    def rejects(self, job: Job) -> bool:
        """Whether the core rejects the job.

        A size is 0 or exceeds the buffers; a flag is not supported; a job that continues or keeps
        sums exceeds a pass; or the sums would start from C and from kept sums.
        """
        sizes = zip((job.m, job.n, job.k), self._limits, strict=True)
        hands_on = bool(job.flags & (JobFlag.ACCUMULATE | JobFlag.KEEP))
        return (
            any(not 0 < size <= limit for size, limit in sizes)
            or bool(int(job.flags) & ~self._flags)
            or hands_on and (job.m > self._pass[0] or job.n > self._pass[1])
            or JobFlag.ACCUMULATE in job.flags and JobFlag.PRELOAD in job.flags
        )
