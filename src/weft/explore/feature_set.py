"""`FeatureSet`: what a kind of core is estimated from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["FeatureSet"]


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureSet:
    """The features of one kind of core: for matrix products, or for networks.

    Attributes
    ----------
    suffix : str
        Of the names of its families of points.
    blocks : dict of tuple of str
        The features of the area of each part of the design. "1" is a constant.
    members : dict of tuple of str
        The blocks (`weft.boards.blocks.GROUPS`) that each part consists of.
    fitted : tuple of str
        The resources that a part takes by its features.
    counted : dict of callable
        For each other resource, a function of the Config that counts it for the whole design.
    features : callable
        The value of each feature of a Config, by its name.
    clock_features : callable
        What the period depends on: of a Config, and of the share of the LUTs that it takes.
    clock_kinds : tuple of str
        The features of the clock that tell kinds of designs apart.
    """

    suffix: str
    blocks: Mapping[str, tuple[str, ...]]
    members: Mapping[str, tuple[str, ...]]
    fitted: tuple[str, ...]
    counted: Mapping[str, Callable[[Any], int]]
    features: Callable[[Any], dict[str, float]]
    clock_features: Callable[[Any, float], dict[str, float]]
    clock_kinds: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all features of the area, each once."""
        return tuple(dict.fromkeys(name for names in self.blocks.values() for name in names))
