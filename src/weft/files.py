"""Writing files: completely or not at all, with the name of the file in every error."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["part_of", "write_bytes", "write_text", "written_whole"]

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
