"""Writing files: completely or not at all, with the name of the file in every error."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "output_file", "output_folder", "part_of", "write_bytes", "write_text", "written_whole",
]

# Errors of a write that name no file, or the one that is copied.
_WRITE_ERRORS = errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG


def part_of(path: Path) -> Path:
    """The temporary name of ``path``, for this process alone, until the file is complete."""
    return path.with_name(f"{path.name}.{os.getpid()}.part")


@contextlib.contextmanager
def written_whole(path) -> Iterator[Path]:
    """Context manager: the temporary name of a file, which gets its own name after the block.

    If the block or the system raises an error, nothing of the file is left, an older file of this
    name stays, and an OSError has the name of the file. A link to a file stays a link.
    """
    real = Path(os.path.realpath(path))
    part = part_of(real)
    try:
        yield part
        os.replace(part, real)
    except OSError as error:
        if error.errno in _WRITE_ERRORS or error.filename in (part, str(part)):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        with contextlib.suppress(OSError):  # the folder may be the problem
            part.unlink(missing_ok=True)


def write_bytes(path, data: bytes) -> None:
    """Write a file of bytes, as `written_whole` describes."""
    with written_whole(path) as part:
        part.write_bytes(data)


def write_text(path, text: str) -> None:
    """Write a file of text in UTF-8, as `written_whole` describes."""
    with written_whole(path) as part:
        part.write_text(text, encoding="utf-8")


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


def output_file(path, *others) -> Path:
    """Check that the file can be written, without changing it; creates its folder.

    Raises OSError if the path is no regular file, or the file cannot be created, or it is one of
    ``others``: files that the command reads, or writes, too. None stands for no file.
    """
    path = Path(path)
    for other in others:
        if other is not None and os.path.realpath(path) == os.path.realpath(other):
            raise OSError(f"output must be a file of its own, not {other}")
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
