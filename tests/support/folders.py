"""Contents of folders that a command wrote."""

__all__ = ["files"]


def files(folder):
    """The paths of all files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
