"""The limits of a sequence of commands: its cycles if all parts of the core but one were ideal."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from weft.commands import Job, JobFlag, Load
from weft.config import Config
from weft.cycles.model import Model
from weft.cycles.output import IdealOutput

__all__ = ["CycleLimits", "limits"]

_FEEDS = JobFlag.FEED_A | JobFlag.FEED_B


@dataclass(frozen=True)
class CycleLimits:
    """Predicted cycles of the same commands on the core, and on cores with ideal parts.

    ================  ==========================================================================
    part              ideal
    ================  ==========================================================================
    load              all operands, parameters and tables are in the buffers before the start
    compute           a tile takes one array step, for any K
    drain             results leave the array and the core in the cycle in which they are ready
    ================  ==========================================================================

    No part can end earlier than its limit, so `cycles` is at least the maximum of `load`,
    `compute` and `drain`, and each of them is at least `latency`.

    Attributes
    ----------
    cycles : int
        The core as it is.
    load, compute, drain : int
        Only this part is as it is; the two others are ideal.
    latency : int
        All three parts are ideal. What remains are job headers, the time from one tile to the next,
        and pipelines.
    """

    cycles: int
    load: int
    compute: int
    drain: int
    latency: int

    @property
    def bound(self) -> str:
        """What bounds the commands: ``load``, ``compute``, ``drain`` or ``latency``.

        ``latency`` if more than half of the cycles remain when all parts are ideal; else the part
        with the highest limit.
        """
        if 2 * self.latency > self.cycles:
            return "latency"
        return max(("compute", "load", "drain"), key=lambda part: getattr(self, part))


def limits(config: Config, commands: Iterable[Job | Load]) -> CycleLimits:
    """The limits of ``commands`` on an idle core, with the rules of `weft.cycles.predict`."""
    commands = list(commands)
    one_step = [replace(c, k=1) if isinstance(c, Job) else c for c in commands]
    resident = [_resident(job) for job in commands if isinstance(job, Job)]
    both = [_resident(job) for job in one_step if isinstance(job, Job)]
    return CycleLimits(
        cycles=_cycles(config, commands),
        load=_cycles(config, one_step, ideal_output=True),
        compute=_cycles(config, resident, ideal_output=True),
        drain=_cycles(config, both),
        latency=_cycles(config, both, ideal_output=True),
    )


def _resident(job):
    return replace(job, flags=job.flags & ~_FEEDS)


def _cycles(config, commands, ideal_output=False):
    model = Model(config, output=IdealOutput) if ideal_output else Model(config)
    for command in commands:
        model.issue(command)
    model.finish()
    return model.cycles
