"""Predicts the time of products on several chips at once, each behind a link to one host.

The bytes on each link are exact, as long as no frame is repeated. The times are a model::

    software * chips + latency + max(longest link, all bytes / bus) + slowest core

The link of a chip carries the commands, and then the results. Nothing of a product overlaps.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from weft.commands import Job, JobFlag, Load, Region
from weft.config import Config
from weft.cycles import predict
from weft.frames import MAX_PAYLOAD
from weft.geometry import memories
from weft.host.planner import Planner
from weft.host.product_cycles import product_cycles
from weft.models.report.streams import FRAME_BYTES, streams

__all__ = [
    "Chip", "Link", "LinkBytes", "Share", "buffer_pages", "core_seconds", "link_bytes",
    "shared_seconds",
]


@dataclass(frozen=True)
class Link:
    """Links of one kind between a host and its chips; each chip has one.

    Attributes
    ----------
    name : str
    rate : float
        Bytes a second on the link of a chip; in each direction, if it is ``duplex``.
    latency : float
        Seconds of a product besides its bytes and its cycles.
    software : float
        Seconds of the driver for each chip. One process drives all chips, so they add up.
    bus : float or None
        Bytes a second that the links of all chips share; None if they share nothing.
    duplex : bool
        Acknowledgements need no time, because commands travel in the other direction.
    """

    name: str
    rate: float
    latency: float
    software: float
    bus: float | None = None
    duplex: bool = False

    def seconds(self, moved: Sequence["LinkBytes"]) -> float:
        """Return the seconds in which all chips move their bytes at the same time."""
        counts = [each.sent + each.results + each.acknowledgements * (not self.duplex)
                  for each in moved]
        own = max(counts, default=0) / self.rate
        return own if self.bus is None else max(own, sum(counts) / self.bus)


@dataclass(frozen=True)
class Chip:
    """A product core, and where the weights are that do not fit its buffer.

    Attributes
    ----------
    config : Config
    clock : float
        Hertz.
    memory : float or None
        Bytes a second of a memory beside the core that has all weights, if there is one.
    """

    config: Config
    clock: float
    memory: float | None = None


@dataclass(frozen=True)
class Share:
    """The part of a product that one chip computes: ``a[m, k] @ b[k, n]``.

    Attributes
    ----------
    m, k, n : int
        ``n`` may be 0: the chip has nothing to do.
    resident : bool
        The chip has ``b`` already, in its buffer or in its memory. Else the link carries it.
    """

    m: int
    k: int
    n: int
    resident: bool = False


@dataclass(frozen=True)
class LinkBytes:
    """Bytes that a product moves on the link of a chip, with frames.

    Attributes
    ----------
    sent : int
        Commands and operands to the chip.
    results : int
        Results from the chip.
    acknowledgements : int
        From the chip, for the frames to it.
    """

    sent: int
    results: int
    acknowledgements: int

    @property
    def received(self) -> int:
        """All bytes from the chip."""
        return self.results + self.acknowledgements


@functools.lru_cache(maxsize=1024)
def link_bytes(config: Config, share: Share) -> LinkBytes:
    """Return the bytes of ``Accelerator.matmul(a, b)`` on a serial port, on USB or over TCP.

    The results are int32, or float32 of a bf16 core. They are exact for a core that no client used
    before, and without ``record``, which reads registers.
    """
    if not share.n:
        return LinkBytes(0, 0, 0)
    moved = streams(config, _commands(config, share))
    acknowledgements = FRAME_BYTES * -(-moved.commands // MAX_PAYLOAD)
    return LinkBytes(moved.sent, moved.received - acknowledgements, acknowledgements)


@functools.lru_cache(maxsize=1024)
def core_seconds(chip: Chip, share: Share) -> float:
    """Return the seconds of the core for a share, when its streams never wait.

    The cycles are those of the cycle model. With a memory beside the core they are at least those
    of the array, ``ceil(m / rows) * ceil(k / depth) * ceil(n / cols)``, and the memory gives each
    weight once.

    Raises ValueError if resident columns fit neither the buffer nor a memory.
    """
    if not share.n:
        return 0.0
    config = chip.config
    if share.resident and chip.memory is not None:
        tiles = -(-share.m // config.rows) * -(-share.n // config.cols)
        weights = share.k * share.n * config.data_type.b.bytes
        return max(weights / chip.memory, tiles * -(-share.k // config.depth) / chip.clock)
    if not share.resident:
        ((cycles, _),) = product_cycles(config, share.m, share.k, share.n, JobFlag(0), [1])
        return cycles / chip.clock
    need, pages = buffer_pages(config, share), memories(config)[Region.B].pages
    if need > pages:
        raise ValueError(
            f"resident columns must fit the {pages} pages of the buffer of B, not need {need}"
        )
    return predict(config, _commands(config, share)).cycles / chip.clock


def buffer_pages(config: Config, share: Share) -> int:
    """Return the pages of the buffer of B that the columns of a share take."""
    b = memories(config)[Region.B]
    return b.panels(share.n) * b.panel_pages(share.k)


def _commands(config, share) -> list[Job | Load]:
    """Return the headers of a product."""
    page = 0 if share.resident else None
    plan = Planner(config).plan(share.m, share.n, share.k, b_page=page)
    return [command for step in plan for command in step.commands]


def shared_seconds(chip: Chip, link: Link, shares: Sequence[Share]) -> float:
    """Return the seconds of a product whose shares equal chips compute at the same time."""
    busy = [share for share in shares if share.n]
    if not busy:
        return 0.0
    core = max(core_seconds(chip, share) for share in busy)
    moved = [link_bytes(chip.config, share) for share in busy]
    return link.software * len(busy) + link.latency + link.seconds(moved) + core
