"""What one matrix product cost: cycles, bytes, utilization, as the hardware counted them."""

from dataclasses import dataclass

__all__ = ["Stats"]


@dataclass(frozen=True)
class Stats:
    """The cost of one `Accelerator.matmul`, from its first command word to its last result word.

    Attributes
    ----------
    cycles : int
        Cycles that the core was busy.
    macs : int
        Products in the result: M * N * K, times the batch.
    peak : int
        MAC/cycle with every PE at work.
    bytes_in, bytes_out : int
        On the command and on the result stream, headers and padding included.
    active, starved, stalled : int
        Cycles in which operands went into the array, were missing, or had no room for results.
    jobs : int
        Jobs that it took.
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
        """Share of the peak that was reached; 0 where nothing ran."""
        return self.macs / (self.cycles * self.peak) if self.cycles else 0.0
