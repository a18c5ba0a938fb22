"""The store: the outcome of every point, in one SQLite file.

Each outcome is one transaction, so a crash loses no finished point. Several processes may use the
file at once. A spare file beside it reserves space: on a full disk it is deleted, the outcome in
hand is written, and `StoreError` tells the user. A damaged file is renamed, never deleted; its
readable points are copied into a new one.
"""

import contextlib
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from weft.explore.points import Point, PointOutcome, versions

__all__ = ["PointStore", "StoreError"]

BUSY = 60.0  # seconds to wait for another process that writes
SPARE = 1 << 20  # bytes of the spare file: more than an outcome with its layout takes
SCHEMA = """
CREATE TABLE IF NOT EXISTS points (
    key TEXT PRIMARY KEY,      -- Config, device, versions, seed
    design TEXT NOT NULL,      -- the same without the seed
    point TEXT NOT NULL,       -- JSON of the Point
    versions TEXT NOT NULL,    -- JSON: tools and sources
    failure TEXT NOT NULL,     -- '' if the point is done
    outcome TEXT NOT NULL,     -- JSON of the PointOutcome
    layout BLOB,               -- the placed cells, compressed JSON
    time REAL NOT NULL         -- seconds since 1970
);
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL);
CREATE TABLE IF NOT EXISTS explorations (
    number INTEGER PRIMARY KEY, arguments TEXT NOT NULL, time REAL NOT NULL
);
"""
COLUMNS = "key, design, point, versions, failure, outcome, layout, time"


class StoreError(OSError):
    """The store cannot be read or written; the message has the file, the reason and the remedy."""


class PointStore:
    """The outcomes of points; a context manager.

    Parameters
    ----------
    path : Path
        The file. It and its folder are made if they do not exist.
    say : callable
        Called with a line of text if the file was damaged.
    owner : str, optional
        Name of this process in claims; by default its number.

    Raises
    ------
    StoreError
        If the file cannot be opened.
    """

    def __init__(
        self, path, *, say: Callable[[str], None] = print, owner: str | None = None
    ):
        self.path = Path(path)
        self._owner = owner or f"{os.uname().nodename}:{os.getpid()}"
        self._spare = self.path.with_name(self.path.name + ".spare")
        with self._errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._db = self._open()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):  # locked, full, not permitted
                    raise
                aside = self._set_aside()
                self._db = self._open()
                count = self._salvage(aside)
                say(
                    f"the store {self.path} is damaged ({error}); it is kept as {aside}, and a new"
                    f" one has the {count} points that could be read"
                )
            try:
                self._reserve()
                self._end_lost_claims()
            except BaseException:
                self._db.close()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self) -> None:
        """Release the claims of this process, and close the file."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("DELETE FROM claims WHERE owner = ?", (self._owner,))
        self._db.close()

    def get(self, point: Point) -> PointOutcome | None:
        """The outcome of a point; None if it has none yet."""
        with self._errors():
            row = self._db.execute(
                "SELECT outcome FROM points WHERE key = ?", (point.key,)
            ).fetchone()
        return None if row is None else PointOutcome(**json.loads(row[0]))

    def all(self) -> list[tuple[Point, PointOutcome]]:
        """All points of the current versions, in the order of their records."""
        with self._errors():
            rows = self._db.execute(
                "SELECT point, outcome FROM points WHERE versions = ? ORDER BY time",
                (json.dumps(versions()),),
            ).fetchall()
        return [
            (Point.from_json(json.loads(point)), PointOutcome(**json.loads(outcome)))
            for point, outcome in rows
        ]

    def layout(self, point: Point) -> list[list[Any]] | None:
        """The placed cells of a point: block, resource, x, y and position in the tile of each."""
        with self._errors():
            row = self._db.execute(
                "SELECT layout FROM points WHERE key = ?", (point.key,)
            ).fetchone()
        return None if row is None or row[0] is None else json.loads(zlib.decompress(row[0]))

    def claim(self, point: Point, seconds: float) -> bool:
        """Reserve a point for this process; False if another one works on it, or it has an outcome.

        A claim ends with `record`, with `close`, or after ``seconds``.
        """
        now = time.time()
        with self._errors(), self._transaction() as db:
            if db.execute("SELECT 1 FROM points WHERE key = ?", (point.key,)).fetchone():
                return False
            changed = db.execute(
                "INSERT INTO claims VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
                " owner = excluded.owner, until = excluded.until"
                " WHERE until < ? OR owner = excluded.owner",
                (point.key, self._owner, now + seconds, now),
            )
            return changed.rowcount == 1

    def record(self, point: Point, outcome: PointOutcome, layout: bytes | None = None) -> None:
        """Keep the outcome of a point; the first outcome of a point stays.

        Parameters
        ----------
        layout : bytes, optional
            The placed cells: JSON, compressed with zlib.

        Raises
        ------
        StoreError
            If the disk is full. The outcome is kept nevertheless, in the space of the spare file.
        """
        row = (
            point.key, point.design, json.dumps(point.to_json()), json.dumps(versions()),
            outcome.failure, json.dumps(asdict(outcome)), layout, time.time(),
        )
        with self._errors():
            try:
                self._insert(row)
            except sqlite3.OperationalError as error:
                if "full" not in str(error):
                    raise
                self._spare.unlink(missing_ok=True)
                self._insert(row)
                raise

    def begin(self, arguments: dict[str, Any]) -> None:
        """Keep the arguments of an exploration, for its report."""
        with self._errors(), self._transaction() as db:
            db.execute(
                "INSERT INTO explorations (arguments, time) VALUES (?, ?)",
                (json.dumps(arguments), time.time()),
            )

    def last(self) -> dict[str, Any] | None:
        """The arguments of the last exploration; None if there was none."""
        with self._errors():
            row = self._db.execute(
                "SELECT arguments FROM explorations ORDER BY number DESC LIMIT 1"
            ).fetchone()
        return None if row is None else json.loads(row[0])

    def _open(self):
        db = sqlite3.connect(self.path, timeout=BUSY, isolation_level=None)
        try:
            [[state], *_] = db.execute("PRAGMA quick_check(1)").fetchall()
            if state != "ok":
                raise sqlite3.DatabaseError(state)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")  # an outcome survives a loss of power
            db.executescript(SCHEMA)
        except BaseException:
            db.close()
            raise
        return db

    def _insert(self, row):
        with self._transaction() as db:
            marks = ", ".join("?" * len(row))
            db.execute(f"INSERT OR IGNORE INTO points ({COLUMNS}) VALUES ({marks})", row)
            db.execute("DELETE FROM claims WHERE key = ?", row[:1])

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _errors(self):
        """Turn errors of SQLite into a StoreError that says what to do."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, StoreError):
                raise
            text, advice = str(error), "check its folder"
            if "full" in text or "No space" in text:
                advice = "free some space and run the command again; no finished point is lost"
            elif "locked" in text:
                advice = f"another process has held it for over {BUSY:g} s"
            elif isinstance(error, sqlite3.DatabaseError) and "malformed" in text:
                advice = "run the command again: it keeps the file aside and makes a new one"
            raise StoreError(f"the store {self.path} cannot be used: {text}; {advice}") from error

    def _reserve(self):
        """Write the spare file; a disk that has no space for it is full."""
        with contextlib.suppress(FileExistsError), open(self._spare, "xb") as spare:
            try:
                spare.write(bytes(SPARE))
            except OSError:
                self._spare.unlink()
                raise

    def _end_lost_claims(self):
        """Delete the claims of processes of this machine that have ended."""
        for [owner] in self._db.execute("SELECT DISTINCT owner FROM claims").fetchall():
            host, _, number = owner.rpartition(":")
            if host == os.uname().nodename and not psutil.pid_exists(int(number)):
                self._db.execute("DELETE FROM claims WHERE owner = ?", (owner,))

    def _set_aside(self):
        """Rename the damaged file, and its journal with it."""
        number = 1
        while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
            number += 1
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.rename(f"{self.path}{suffix}", f"{aside}{suffix}")
        return aside

    def _salvage(self, aside):
        """Copy the points that can be read from a damaged file; their number."""
        count = 0
        with contextlib.suppress(sqlite3.Error, ValueError, TypeError):
            damaged = sqlite3.connect(f"file:{aside}?mode=ro", uri=True)
            with contextlib.closing(damaged):
                for row in damaged.execute(f"SELECT {COLUMNS} FROM points"):
                    PointOutcome(**json.loads(row[5]))
                    self._insert(row)
                    count += 1
        return count
