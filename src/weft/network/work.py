"""What a session executes: the work of a step on the core, or on the host."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.commands import Job, Load

__all__ = ["CoreWork", "HostWork"]


@dataclass(frozen=True, eq=False)
class HostWork:
    """A kernel of `weft.network.kernels`.

    Attributes
    ----------
    kernel : str
    attributes : mapping of str
        Numbers, strings, tuples of them, arrays, and bytes.
    """

    kernel: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class CoreWork:
    """Matrix products on the core."""

    def commands(self) -> list[Job | Load]:
        """Return the headers of the step's jobs and loads in stream order, for one inference.

        Loads of the weights of the next step are left out: the report finds from the headers what
        bounds this step (`weft.cycles.limits`).
        """
        raise NotImplementedError
