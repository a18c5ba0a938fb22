"""Keeps results that take long to make, each in a folder named by all that it is made from."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import warnings
from pathlib import Path

__all__ = ["LIMIT", "CacheWarning", "clear", "digest", "entry", "folder", "root"]

LIMIT = 2 << 30  # bytes; above it, the entries that were not used for the longest time are deleted
_CONTENTS = "contents.json"  # file -> [bytes, SHA-256]; written last, so an entry has it or is void


class CacheWarning(RuntimeWarning):
    """An entry of the cache was damaged and is made again."""


def folder() -> Path:
    """The folder of all builds: ``$WEFT_BUILD``, else ``weft`` in the user's cache folder."""
    own = os.environ.get("WEFT_BUILD")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(own).absolute() if own else cache / "weft"


def root() -> Path:
    """The folder of the cache; nothing else is in it."""
    return folder() / "cache"


def digest(*parts) -> str:
    """16 digits that change with ``parts``, each a text or bytes."""
    whole = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        whole.update(hashlib.sha256(data).digest())
    return whole.hexdigest()[:16]


def entry(kind: str, name: str, make) -> Path:
    """The folder ``<root>/<kind>/<name>`` with all that ``make`` wrote into it.

    An entry that is there is used again, if each of its files still has the SHA-256 that it had.
    A damaged entry is made again, with a `CacheWarning`. Processes that want the same entry wait
    for the first one to make it.

    Parameters
    ----------
    kind : str
        Sort of entry: one folder each.
    name : str
        Must change with everything that the files depend on.
    make : callable
        Called with an empty folder, which it fills. The entry appears when it returns, whole, or
        not at all.
    """
    place = root() / kind / name
    if _intact(place):
        os.utime(place / _CONTENTS)  # the time of the last use
        return place
    with _alone(kind, name):
        if _intact(place):
            return place
        if place.exists():
            warnings.warn(
                f"{place} must hold the files that were built there, and they have changed since:"
                " building them again", CacheWarning, stacklevel=2,
            )
            shutil.rmtree(place)
        part = place.with_name(f".{name}")  # left there by a process that was killed, or new
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            make(part)
            (part / _CONTENTS).write_text(json.dumps(_digests(part), indent=1), encoding="utf-8")
            part.rename(place)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    _prune(place)
    return place


def clear() -> int:
    """Delete the whole cache; returns its size in bytes."""
    size = sum(path.lstat().st_size for path in root().rglob("*") if path.is_file())
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(root())
    return size


@contextlib.contextmanager
def _alone(kind, name):
    """Hold the lock of one entry."""
    locks = root() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with open(locks / f"{kind}-{name}", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _digests(place):
    files = sorted(path for path in place.rglob("*") if path.is_file() and path.name != _CONTENTS)
    found = {}
    for path in files:
        data = path.read_bytes()
        name = path.relative_to(place).as_posix()
        found[name] = [len(data), hashlib.sha256(data).hexdigest()]
    return found


def _intact(place):
    """Whether an entry is there, with the files that were made and no others."""
    try:
        contents = json.loads((place / _CONTENTS).read_text(encoding="utf-8"))
        return contents == _digests(place)
    except (OSError, ValueError):
        return False


def _prune(newest):
    """Delete entries, the longest unused first, until the cache holds `LIMIT` bytes."""
    entries = []
    for contents in root().glob(f"*/*/{_CONTENTS}"):
        # Another process may be deleting the same entry.
        with contextlib.suppress(OSError, ValueError):
            files = json.loads(contents.read_text(encoding="utf-8")).values()
            size = sum(size for size, _ in files)
            entries.append((contents.stat().st_mtime, size, contents.parent))
    total = sum(size for _, size, _ in entries)
    for _, size, place in sorted(entries):
        if total <= LIMIT:
            break
        if place != newest:
            shutil.rmtree(place, ignore_errors=True)
            total -= size
