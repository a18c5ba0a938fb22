"""Writing a kit to disk: completely or not at all, and only into a new folder or over a kit."""

import hashlib
import json
import os
import shutil
from importlib import resources
from pathlib import Path

from weft.files import write_bytes

__all__ = ["MANIFEST", "check", "manifest", "text", "write"]


def text(name: str) -> str:
    """The text of a file in `weft.kit.files`."""
    return resources.files("weft.kit.files").joinpath(name).read_text(encoding="utf-8")


MANIFEST = "kit.json"


def manifest(files: dict[str, bytes], **facts) -> bytes:
    """The manifest as JSON: ``facts``, and the SHA-256 of each file."""
    digests = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}
    return (json.dumps({**facts, "files": digests}, indent=2) + "\n").encode()


def check(folder: Path) -> None:
    """Raise OSError if ``folder`` is a file, or holds files and no kit."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise OSError(f"output must be a folder, and {folder} is a file")
    if any(folder.iterdir()) and not (folder / MANIFEST).is_file():
        raise OSError(
            f"output must be a new folder, an empty one or a kit, and {folder} holds no {MANIFEST}"
        )


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Replace the contents of ``folder`` with ``files``, which include the manifest."""
    check(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    new, old = (folder.with_name(f".{folder.name}.{kind}{os.getpid()}") for kind in ("new", "old"))
    try:
        for name, data in files.items():
            path = new / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_bytes(path, data)
            except OSError as error:
                error.filename = str(folder / name)  # instead of the name in the new folder
                raise
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    finally:
        if old.exists() and not folder.exists():
            old.rename(folder)
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
