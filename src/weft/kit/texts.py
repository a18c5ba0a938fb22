"""Reading the fixed files of a kit, which are copied without change."""

from importlib import resources

__all__ = ["text"]


def text(name: str) -> str:
    """The text of a file in `weft.kit.files`."""
    return resources.files("weft.kit.files").joinpath(name).read_text(encoding="utf-8")
