"""The seam between the two kinds of core: `Design` is what both have, `PerKind` what differs.

A **product core** multiplies matrices that a stream of commands describes; its Design is a
`weft.config.Config`. A **network core** executes the lists of a network from its own memory; its
Design is a `weft.network_core.config.NetworkCoreConfig`, which has the Config of its array.

Code that works for both kinds asks a Design for its facts. Where a room of the tree needs other
code for each kind, it says so once, with a `PerKind`. Only `weft.designs`, which makes Designs,
tests the type of one.
"""

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from weft.config import Config

__all__ = ["NETWORK", "PRODUCT", "Design", "PerKind"]

PRODUCT, NETWORK = "product core", "network core"
T = TypeVar("T")


@runtime_checkable
class Design(Protocol):
    """The parameters of a core of either kind."""

    @property
    def kind(self) -> str:
        """`PRODUCT` or `NETWORK`."""

    @property
    def array(self) -> "Config":
        """The Config of the array; of a product core, the Design itself."""

    @property
    def target(self) -> str:
        """FPGA family."""

    @property
    def name(self) -> str:
        """Short name, usable as the name of a folder or a file."""

    @property
    def hash(self) -> int:
        """32-bit hash of all parameters, which the core has in a register."""

    @property
    def peak(self) -> int:
        """MAC/cycle when every PE is active."""


class PerKind(Generic[T]):
    """What one room of the tree has for each kind of core: classes, functions or values.

    Parameters
    ----------
    product, network
        What it has for a product core, and for a network core.
    """

    def __init__(self, *, product: T, network: T):
        self._of = {PRODUCT: product, NETWORK: network}

    def of(self, owner: Any) -> T:
        """What the room has for the kind of ``owner``: a Design, or a thing that has its kind."""
        return self._of[owner.kind]
