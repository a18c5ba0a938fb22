"""Where a command writes: checked before it works, with an error that says what cannot be."""

import tempfile
from pathlib import Path

__all__ = ["output_file", "output_folder", "part_of"]


def output_folder(path) -> Path:
    """The folder, made where there is none.

    Raises OSError, naming it, where it cannot be made or written in.
    """
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        error.filename = str(path)  # that of a file in it would tell nothing
        raise OSError(f"folder of the output must be one to write in: {error}") from error
    return path


def output_file(path) -> Path:
    """A file that can be written, its folder made where there is none; it stays as it is.

    Raises OSError where there is something else than a file, or none can be made.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "no regular file"
        raise OSError(f"output must be a file, and {path} is {kind}")
    output_folder(path.parent)
    part = part_of(path)
    try:
        part.touch()
        part.unlink()
    except OSError as error:
        raise OSError(f"output must be a file that can be written: {error}") from error
    return path


def part_of(path: Path) -> Path:
    """Where ``path`` is written until it is whole."""
    return path.with_name(path.name + ".part")
