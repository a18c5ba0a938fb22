"""The seam between the kinds of core: `Design` is what all have, `PerKind` what differs.

A **product core** multiplies matrices that a stream of commands describes; its Design is a
`weft.config.Config`. A **network core** executes the lists of a network from its own memory; its
Design is a `weft.network_core.config.NetworkCoreConfig`, which has the Config of its array. A
**language core** writes text with a language model from its own memory; its Design is a
`weft.language_core.config.LanguageCoreConfig`.

Code that works for all kinds asks a Design for its facts. Where a room of the tree needs other
code for each kind, it says so once, with a `PerKind`. Only `weft.designs`, which makes Designs,
tests the type of one.
"""

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from weft.config import Config

__all__ = [
    "LANGUAGE", "NETWORK", "PRODUCT", "CoreDesign", "Design", "CoreKindError", "PerKind",
]

PRODUCT, NETWORK, LANGUAGE = "product core", "network core", "language core"
T = TypeVar("T")


class CoreKindError(ValueError):
    """A core of this kind cannot do what was asked; the message says which kinds can."""


class CoreDesign(Protocol):
    """The parameters of a core of any kind."""

    @property
    def kind(self) -> str:
        """`PRODUCT`, `NETWORK` or `LANGUAGE`."""

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
        """MAC/cycle when the whole array is active."""


@runtime_checkable
class Design(CoreDesign, Protocol):
    """The parameters of a product core or of a network core."""

    @property
    def array(self) -> "Config":
        """The Config of the array; of a product core, the Design itself."""


class PerKind(Generic[T]):
    """What one room of the tree has for each kind of core: classes, functions or values.

    Parameters
    ----------
    product, network
        What it has for a product core, and for a network core.
    language : optional
        What it has for a language core, if it knows this kind.
    """

    def __init__(self, *, product: T, network: T, language: T | None = None):
        self._of = {PRODUCT: product, NETWORK: network}
        if language is not None:
            self._of[LANGUAGE] = language

    def of(self, owner: Any) -> T:
        """What the room has for the kind of ``owner``: a Design, or a thing that has its kind.

        Raises CoreKindError if it has nothing for it.
        """
        if owner.kind not in self._of:
            raise CoreKindError(f"the core must be a {' or a '.join(self._of)}, not a {owner.kind}")
        return self._of[owner.kind]
