"""Where a command writes: folders made on the way, or an error that says which cannot be."""

from pathlib import Path

__all__ = ["output_folder"]


def output_folder(path) -> Path:
    """The folder, made where there is none; OSError, naming it, where it cannot be."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"folder of the output must be one to write in: {error}") from error
    return path
