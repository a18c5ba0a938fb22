"""How a list ended."""

from dataclasses import dataclass

from weft.chip.descriptors import ListError

__all__ = ["ListReport"]


@dataclass(frozen=True)
class ListReport:
    """How a list ended.

    Attributes
    ----------
    error : ListError
    jobs : int
        Jobs that have ended; after an error, the number of the job with the error.
    result : bytes
        The bytes that END names.
    cycles : int or None
        Cycles from START to the end; None if they were not counted.
    """

    error: ListError
    jobs: int
    result: bytes = b""
    cycles: int | None = None
