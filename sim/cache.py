"""A cache of build results: each is a folder with a name that depends on all of its inputs."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import warnings
from pathlib import Path

from weft.files import write_text

__all__ = ["LIMIT", "CacheWarning", "clear", "digest", "entry", "folder", "root"]

LIMIT = 2 << 30  # bytes; above it, the least recently used entries are deleted
_CONTENTS = "contents.json"  # file -> [bytes, SHA-256]; written last


class CacheWarning(RuntimeWarning):
    """An entry of the cache was damaged and is built again."""


def folder() -> Path:
    """The folder of all builds: ``$WEFT_BUILD``, else ``weft`` in the user's cache folder."""
    build = os.environ.get("WEFT_BUILD")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(build).absolute() if build else cache / "weft"


def root() -> Path:
    """The folder of the cache; it has no other contents."""
    return folder() / "cache"


def digest(*parts) -> str:
    """16 hexadecimal digits that depend on ``parts``, each a text or bytes."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        hasher.update(hashlib.sha256(data).digest())
    return hasher.hexdigest()[:16]


def entry(kind: str, name: str, make) -> Path:
    """The folder ``<root>/<kind>/<name>`` with the files that ``make`` wrote into it.

    An existing entry is used if each of its files still has its SHA-256. A damaged entry is built
    again, with a `CacheWarning`. Processes that need the same entry wait for the first one to
    build it.

    Parameters
    ----------
    kind : str
        Kind of entry; each kind has its own folder.
    name : str
        Must depend on all inputs of the files.
    make : callable
        Called with an empty folder, which it fills. The entry appears when ``make`` returns.
    """
    entry_folder = root() / kind / name
    if _intact(entry_folder):
        with contextlib.suppress(OSError):  # a cache that was built before may be read-only
            os.utime(entry_folder / _CONTENTS)  # the time of the last use
        return entry_folder
    with _locked(kind, name):
        if _intact(entry_folder):
            return entry_folder
        if entry_folder.exists():
            warnings.warn(
                f"the files in {entry_folder} have changed since they were built;"
                " building them again", CacheWarning, stacklevel=2,
            )
            shutil.rmtree(entry_folder)
        part = entry_folder.with_name(f".{name}")  # may be left over from a killed process
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            make(part)
            write_text(part / _CONTENTS, json.dumps(_digests(part), indent=1))
            part.rename(entry_folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    _prune(entry_folder)
    return entry_folder


def clear() -> int:
    """Delete the whole cache; returns the size that it had, in bytes."""
    size = sum(path.lstat().st_size for path in root().rglob("*") if path.is_file())
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(root())
    return size


@contextlib.contextmanager
def _locked(kind, name):
    """Hold the lock of an entry."""
    locks = root() / "locks"
    try:
        locks.mkdir(parents=True, exist_ok=True)
        lock = open(locks / f"{kind}-{name}", "w", encoding="utf-8")
    except OSError as error:
        raise OSError(
            f"cannot write to the cache: {error}; set WEFT_BUILD to a folder that can be written"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _CONTENTS)
    digests = {}
    for path in files:
        data = path.read_bytes()
        name = path.relative_to(folder).as_posix()
        digests[name] = [len(data), hashlib.sha256(data).hexdigest()]
    return digests


def _intact(folder):
    """Whether an entry exists and has exactly the files that were built."""
    try:
        contents = json.loads((folder / _CONTENTS).read_text(encoding="utf-8"))
        return contents == _digests(folder)
    except (OSError, ValueError):
        return False


def _prune(newest):
    """Delete the least recently used entries until the cache has at most `LIMIT` bytes."""
    entries = []
    for contents in root().glob(f"*/*/{_CONTENTS}"):
        # Another process may be deleting the same entry.
        with contextlib.suppress(OSError, ValueError):
            files = json.loads(contents.read_text(encoding="utf-8")).values()
            size = sum(size for size, _ in files)
            entries.append((contents.stat().st_mtime, size, contents.parent))
    total = sum(size for _, size, _ in entries)
    for _, size, folder in sorted(entries):
        if total <= LIMIT:
            break
        if folder != newest:
            shutil.rmtree(folder, ignore_errors=True)
            total -= size
