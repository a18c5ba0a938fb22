"""How a list ended, and the states of a network core."""

from dataclasses import dataclass
from enum import IntEnum

from weft.network_core.descriptors import ListError

__all__ = ["ListReport", "NetworkState"]


class NetworkState(IntEnum):
    """What the core does, or how its last list ended."""

    IDLE = 0  # no list since the reset
    RUNNING = 1
    DONE = 2
    ABORTED = 3
    ERROR = 4


_REASONS = {
    ListError.OPCODE: "the list has an unknown descriptor",
    ListError.FIELD: "a field of a descriptor does not fit the core",
    ListError.ADDRESS: "an address lies outside of the memory that the list may use",
    ListError.DEADLOCK: "loads and jobs of the list wait for each other",
    ListError.ABORTED: "the list was aborted",
    ListError.BUS: "the program memory answered with an error (SLVERR or DECERR)",
    ListError.TIMEOUT: "the program memory did not answer",
}


@dataclass(frozen=True)
class ListReport:
    """How a list ended.

    Attributes
    ----------
    error : ListError
    jobs : int
        Jobs that have ended; after an error, the number of the job with the error.
    result : bytes
        The bytes of the memory that the list's last descriptor, END, names; empty if it names none.
    cycles : int or None
        Cycles from START to the end; None if they were not counted.
    """

    error: ListError
    jobs: int
    result: bytes = b""
    cycles: int | None = None

    def problem(self, where: str | None = None) -> str:
        """Return the error in words; "" if there is none.

        ``where`` are the words for the place of the error, by default the number of the job.
        """
        if self.error == ListError.NONE:
            return ""
        where = where or f"in job {self.jobs}"
        return f"the list ended with error {self.error.name} {where}: {_REASONS[self.error]}"
