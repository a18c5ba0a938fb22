"""Checks of output files and folders, made before a command starts its work."""

import tempfile
from pathlib import Path

from weft.files import part_of

__all__ = ["output_file", "output_folder"]


def output_folder(path) -> Path:
    """Create the folder if it does not exist.

    Raises OSError, with its name, if it cannot be created or written to.
    """
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        error.filename = str(path)  # instead of the name of the temporary file
        raise OSError(f"cannot write to the output folder: {error}") from error
    return path


def output_file(path) -> Path:
    """Check that the file can be written, without changing it; creates its folder.

    Raises OSError if the path is no regular file, or the file cannot be created.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a special file"
        raise OSError(f"output must be a file; {path} is {kind}")
    output_folder(path.parent)
    part = part_of(path)
    try:
        part.touch()
        part.unlink()
    except OSError as error:
        error.filename = str(path)  # instead of the temporary name
        raise OSError(f"cannot write the output file: {error}") from error
    return path
