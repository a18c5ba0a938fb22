"""A kit on the disk: written whole or not at all, and only over another kit."""

import hashlib
import json
import os
import shutil
from pathlib import Path

__all__ = ["MANIFEST", "check", "manifest", "write"]

MANIFEST = "kit.json"


def manifest(files: dict[str, bytes], **facts) -> bytes:
    """The text of the manifest: ``facts``, and each file with its SHA-256."""
    sums = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}
    return (json.dumps({**facts, "files": sums}, indent=2) + "\n").encode()


def check(folder: Path) -> None:
    """OSError where ``folder`` may not be written: there is something that is no kit."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise OSError(f"output must be a folder, and {folder} is a file")
    if any(folder.iterdir()) and not (folder / MANIFEST).is_file():
        raise OSError(
            f"output must be a new folder, an empty one or a kit, and {folder} holds no {MANIFEST}"
        )


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Make ``folder`` hold ``files``, its manifest among them, and nothing else."""
    check(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    part, old = (folder.with_name(f".{folder.name}.{kind}{os.getpid()}") for kind in ("new", "old"))
    try:
        for name, data in files.items():
            path = part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if folder.exists():
            folder.rename(old)
        part.rename(folder)
    finally:
        if old.exists() and not folder.exists():
            old.rename(folder)
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
