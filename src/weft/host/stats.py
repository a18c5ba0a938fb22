"""The cost of one matrix product: cycles, bytes and utilization, from the core's counters."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

__all__ = ["Stats", "sum_stats"]


@dataclass(frozen=True)
class Stats:
    """The cost of one `Accelerator.matmul`, from its first command word to its last result word.

    Attributes
    ----------
    cycles : int
        Cycles in which the core was busy.
    macs : int
        Multiply-accumulate operations: M * N * K, times the size of the batch.
    peak : int
        Maximum MAC/cycle of the core: rows * cols * depth.
    bytes_in, bytes_out : int
        Bytes on the command and result streams, including headers and padding.
    active : int
        Cycles in which the array accepted operands.
    starved : int
        Cycles in which the array waited for operands.
    stalled : int
        Cycles in which the array waited for space for results.
    jobs : int
        Number of jobs.
    """

    cycles: int
    macs: int
    peak: int
    bytes_in: int
    bytes_out: int
    active: int
    starved: int
    stalled: int
    jobs: int

    @property
    def utilization(self) -> float:
        """``macs / (cycles * peak)``, in 0..1; 0 if no job ran."""
        return self.macs / (self.cycles * self.peak) if self.cycles else 0.0


def sum_stats(parts: Sequence[Stats]) -> Stats:
    """Return the cost of several products on one core, one after another."""
    total = Stats(*map(sum, zip(*map(astuple, parts), strict=True)))
    return replace(total, peak=parts[0].peak)
