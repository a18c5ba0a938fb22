"""The files of a kit that are taken over as they are."""

from importlib import resources

__all__ = ["text"]


def text(name: str) -> str:
    """The text of a file of `weft.kit.files`."""
    return resources.files("weft.kit.files").joinpath(name).read_text(encoding="utf-8")
