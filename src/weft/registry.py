"""`Registry`: objects by name, and for each of them one object of each layer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Choices", "LayerTable", "MissingLayerError", "Registry"]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


class MissingLayerError(LookupError):
    """An object was registered without the object of a layer."""


class LayerTable(dict[str, Any]):
    """The table of one layer: its own object for each registered name.

    Raises MissingLayerError for a name that the layer has no object for.
    """

    def __init__(self, kind: str, layer: str):
        super().__init__()
        self._kind, self._layer = kind, layer

    def __missing__(self, name):
        raise MissingLayerError(
            f"{self._kind} {name!r} must be registered with {self._layer}=..., not without it"
        )


class Registry(Mapping[str, T], Generic[T]):
    """Objects by name, in the order of their registration.

    The objects are plain data that every layer may import. A layer with classes of its own for
    them (hardware, golden model, driver) keeps these in a `layer`, by the same names.

    Parameters
    ----------
    kind : str
        Kind of the objects, for messages: ``"data type"``.
    objects : each with a ``name``
    """

    def __init__(self, kind: str, *objects: T):
        self._kind = kind
        self._objects: dict[str, T] = {}
        self._layers: dict[str, LayerTable] = {}
        for item in objects:
            self.register(item)
        self._own = frozenset(self._objects)

    def __getitem__(self, name: str) -> T:
        return self._objects[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def register(self, item: T, **layers: Any) -> None:
        """Add an object, with its object of each layer by the name of the layer.

        Raises ValueError for a name that is taken.
        """
        if item.name in self._objects:
            raise ValueError(f"name of a {self._kind} must be new, not {item.name!r}")
        self._objects[item.name] = item
        for layer, value in layers.items():
            self.layer(layer)[item.name] = value

    def remove(self, name: str) -> None:
        """Remove an object, and its objects of all layers."""
        del self._objects[name]
        for layer in self._layers.values():
            layer.pop(name, None)

    @property
    def extended(self) -> bool:
        """Whether it has objects that were registered after it was made."""
        return not self._own.issuperset(self._objects)

    def layer(self, name: str, **objects: Any) -> LayerTable:
        """The table of a layer, with ``objects`` added by their names."""
        layer = self._layers.setdefault(name, LayerTable(self._kind, name))
        layer.update(objects)
        return layer


class Choices(Sequence[str]):
    """The values of a field that names registered objects; ``names`` is called at each use."""

    def __init__(self, names: Callable[[], list[str]]):
        self._names = names

    def __getitem__(self, index):
        return self._names()[index]

    def __len__(self) -> int:
        return len(self._names())
