"""The record of an offloaded function: which operators ran where, how often, and why."""

import math
import threading
from collections import Counter
from dataclasses import dataclass, field

__all__ = ["NO_PRODUCT", "Operator", "Record", "Sent", "Tally"]

NO_PRODUCT = "no product"  # the reason of operators that no core would compute

Shape = tuple[int, int, int, int]  # count, m, k, n


@dataclass(frozen=True)
class Operator:
    """An operator of a function.

    Attributes
    ----------
    kind : str
        Its name in the framework: ``dot_general``.
    name : str
        Where it is in the function; may be empty.
    products : tuple of (int, int, int, int)
        The products that compute it: count, m, k, n of each.
    reason : str
        Why the framework computes it; empty if the core does.
    """

    kind: str
    name: str = ""
    products: tuple[Shape, ...] = ()
    reason: str = ""

    @property
    def on_weft(self) -> bool:
        """Whether the core computes it."""
        return not self.reason

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations of one call."""
        return sum(map(math.prod, self.products))

    @property
    def title(self) -> str:
        """``dot_general at conv1``, for messages."""
        return f"{self.kind} at {self.name}" if self.name else self.kind


@dataclass(frozen=True)
class Sent:
    """Products that were sent to a core, or a B that stays in its buffer.

    Attributes
    ----------
    shape : (int, int, int, int)
        count, m, k, n; m is 0 for a B alone.
    free : pair of (first page, pages), or None
        Pages of the buffers of A and of B that the products may use; None: all.
    b_pages : tuple of int, or None
        First page of the B of each product, if B was in the buffer already.
    """

    shape: Shape
    free: tuple[tuple[int, int], tuple[int, int]] | None = None
    b_pages: tuple[int, ...] | None = None


@dataclass
class Tally:
    """What an operator has done since the record was cleared.

    Attributes
    ----------
    calls : int
        How often the core computed it; 0 for an operator of the framework, whose calls are not
        seen.
    uses : int
        How often it stands in the traced functions.
    seconds : float
        Time in the driver and in the core, with the conversion of the operands.
    streams : Counter of Sent
        What was sent to the core, and how often.
    """

    calls: int = 0
    uses: int = 0
    seconds: float = 0.0
    streams: Counter[Sent] = field(default_factory=Counter)


class Record:
    """The operators of offloaded functions in the order of their first use. Threads may share it.
    """

    def __init__(self) -> None:
        self._tallies: dict[Operator, Tally] = {}
        self._lock = threading.Lock()

    def found(self, operators: list[Operator]) -> None:
        """Take note of the operators of a function that was traced."""
        with self._lock:
            for operator in operators:
                self._tallies.setdefault(operator, Tally()).uses += 1

    def ran(self, operator: Operator, streams: list[Sent], seconds: float) -> None:
        """Take note of one call of an operator on the core."""
        with self._lock:
            tally = self._tallies.setdefault(operator, Tally())
            tally.calls += 1
            tally.seconds += seconds
            tally.streams.update(streams)

    def clear(self) -> None:
        """Set all numbers of calls to 0; the operators stay."""
        with self._lock:
            for operator, tally in self._tallies.items():
                self._tallies[operator] = Tally(uses=tally.uses)

    def tallies(self) -> dict[Operator, Tally]:
        """Return a copy of all that is recorded."""
        with self._lock:
            return {
                operator: Tally(tally.calls, tally.uses, tally.seconds, Counter(tally.streams))
                for operator, tally in self._tallies.items()
            }
