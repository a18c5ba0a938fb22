"""The record of a step that a session has run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.models.network_core.program import NetworkCoreRename, NetworkCoreStep
    from weft.models.program import Step

__all__ = ["NetworkCoreRecord"]


@dataclass(frozen=True)
class NetworkCoreRecord:
    """The measured cost of a step.

    Attributes
    ----------
    step : NetworkCoreStep, NetworkCoreRename or Step
        A layer on the core, an operator without work, or an operator of the host.
    cycles : int or None
        Cycles of a layer in one inference: from the end of the job before the layer to the layer's
        last store. Cycles of an operator of the host whose products run on the core: those of the
        lists of its products, for all inferences that run at once. None for other operators of the
        host, and if the runner does not count cycles.
    seconds : float
        Time of the host; 0 for a layer.
    """

    step: "NetworkCoreStep | NetworkCoreRename | Step"
    cycles: int | None
    seconds: float

    def __add__(self, other: "NetworkCoreRecord") -> "NetworkCoreRecord":
        """Return the record with the time of further inferences."""
        return NetworkCoreRecord(self.step, self.cycles, self.seconds + other.seconds)
