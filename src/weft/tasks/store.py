"""A store: the outcome of every item, in one SQLite file; and a run that keeps them there.

Each outcome is one transaction, so a crash loses no finished item. Several processes may use the
file at once. A spare file beside it reserves space: on a full disk it is deleted, the outcome in
hand is written, and `StoreError` tells the user. A damaged file is renamed, never deleted; its
readable outcomes are copied into a new one.
"""

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from weft.tasks.engine import Engine

__all__ = ["Claimant", "ResultStore", "StoreError", "run_items"]

BUSY = 60.0  # seconds to wait for another process that writes
PROC = Path("/proc")
SPARE = 1 << 20  # bytes of the spare file: more than an outcome with its layout takes
CLAIMS = """
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL);
"""


class StoreError(OSError):
    """The store cannot be read or written; the message has the file, the reason and the remedy."""


@dataclass(frozen=True)
class Claimant:
    """A process that has claimed items.

    Attributes
    ----------
    host : str
        Name of its machine.
    number : int
        The number of the process, which the system gives to another one after its end.
    start : str
        When it started, which no other process of this number shares.
    """

    host: str
    number: int
    start: str

    @classmethod
    def here(cls) -> "Claimant":
        """This process."""
        return cls(os.uname().nodename, os.getpid(), _start_of(os.getpid()))

    @classmethod
    def of(cls, text: str) -> "Claimant":
        """The process of its text."""
        host, number, start = [*text.split(":"), "", ""][:3]
        return cls(host, int(number or 0), start)

    def __str__(self):
        return f"{self.host}:{self.number}:{self.start}"

    @property
    def alive(self) -> bool | None:
        """Whether the process has not ended; None on another machine, where nobody knows."""
        if self.host != os.uname().nodename:
            return None
        return bool(self.start) and self.start == _start_of(self.number)

    def describe(self) -> str:
        """Which process an item is left to, and whether it runs."""
        return {
            True: f"left to process {self.number}, which runs",
            False: f"left to process {self.number}, which ended without an outcome",
            None: f"left to process {self.number} of {self.host}, which may have ended",
        }[self.alive]


def _start_of(number):
    """When a process started; empty if there is none of this number, or only its exit code."""
    boot, status = PROC / "sys/kernel/random/boot_id", PROC / f"{number}/stat"
    with contextlib.suppress(OSError, IndexError):
        state, *fields = status.read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else f"{boot.read_text()[:8]}-{fields[18]}"
    with contextlib.suppress(psutil.Error):  # a system without these files
        return "" if boot.exists() else f"{psutil.Process(number).create_time():.2f}"
    return ""


class ResultStore:
    """The outcomes of items; a context manager.

    A subclass has the table and the types. An item has a ``key`` and ``to_json()``. An outcome is
    a dataclass with the field ``failure``; the text is empty after a success.

    Parameters
    ----------
    path : Path
        The file. It and its folder are made if they do not exist.
    say : callable
        Called with a line of text if the file was damaged.
    owner : Claimant, optional
        Whose claims they are; by default this process.

    Attributes
    ----------
    SCHEMA : str
        SQL that makes the table of outcomes, and other tables.
    TABLE : str
        Name of the table of outcomes.
    COLUMNS : tuple of str
        Its columns: the key, a group of items, the item, versions, failure, outcome, data, time.

    Raises
    ------
    StoreError
        If the file cannot be opened.
    """

    SCHEMA: str
    TABLE: str
    COLUMNS: tuple[str, ...]

    def __init__(
        self, path, *, say: Callable[[str], None] = print, owner: Claimant | None = None
    ):
        self.path = Path(path)
        self._owner = str(owner or Claimant.here())
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
                    f" one has the {count} outcomes that could be read"
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

    def versions(self) -> dict[str, str]:
        """The versions that outcomes depend on."""
        raise NotImplementedError

    def group(self, item: Any) -> str:
        """The group of an item."""
        raise NotImplementedError

    def item(self, values: dict[str, Any]) -> Any:
        """The item of its ``to_json``."""
        raise NotImplementedError

    def outcome(self, values: dict[str, Any]) -> Any:
        """The outcome with these fields; raises TypeError for other fields."""
        raise NotImplementedError

    def keep(self, item: Any, result: Any) -> Any:
        """Record the result of an item's task; its outcome."""
        raise NotImplementedError

    def get(self, item: Any) -> Any | None:
        """The outcome of an item; None if it has none yet."""
        found = self._value(item, self.COLUMNS[5])
        return None if found is None else self.outcome(json.loads(found))

    def data(self, item: Any) -> bytes | None:
        """The data that were recorded with the outcome of an item."""
        return self._value(item, self.COLUMNS[6])

    def all(self) -> list[tuple[Any, Any]]:
        """All items of the current versions with their outcomes, in the order of their records."""
        with self._errors():
            rows = self._db.execute(
                f"SELECT {self.COLUMNS[2]}, outcome FROM {self.TABLE} WHERE versions = ?"
                " ORDER BY time", (json.dumps(self.versions()),),
            ).fetchall()
        return [
            (self.item(json.loads(item)), self.outcome(json.loads(outcome)))
            for item, outcome in rows
        ]

    def claim(self, item: Any, seconds: float) -> Claimant | None:
        """Reserve an item for this process; the other one that works on it, or None if reserved.

        A claim ends with `record`, with `close`, after ``seconds``, or with its process.
        """
        now = time.time()
        with self._errors(), self._transaction() as db:
            found = db.execute(
                "SELECT owner FROM claims WHERE key = ? AND until >= ?", (item.key, now)
            ).fetchone()
            if found is not None and found[0] != self._owner:
                other = Claimant.of(found[0])
                if other.alive is not False:
                    return other
            db.execute(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?)",
                (item.key, self._owner, now + seconds),
            )
            return None

    def record(self, item: Any, outcome: Any, data: bytes | None = None) -> None:
        """Keep the outcome of an item; the first outcome of an item stays.

        Raises
        ------
        StoreError
            If the disk is full. The outcome is kept nevertheless, in the space of the spare file.
        """
        row = (
            item.key, self.group(item), json.dumps(item.to_json()), json.dumps(self.versions()),
            outcome.failure, json.dumps(asdict(outcome)), data, time.time(),
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

    def forget(self, item: Any) -> None:
        """Delete the outcome of an item."""
        with self._errors(), self._transaction() as db:
            db.execute(f"DELETE FROM {self.TABLE} WHERE key = ?", (item.key,))

    def _value(self, item, column):
        """A column of an item's row; None without a row."""
        with self._errors():
            row = self._db.execute(
                f"SELECT {column} FROM {self.TABLE} WHERE key = ?", (item.key,)
            ).fetchone()
        return None if row is None else row[0]

    def _open(self):
        db = sqlite3.connect(self.path, timeout=BUSY, isolation_level=None)
        try:
            [[state], *_] = db.execute("PRAGMA quick_check(1)").fetchall()
            if state != "ok":
                raise sqlite3.DatabaseError(state)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")  # an outcome survives a loss of power
            db.executescript(CLAIMS + self.SCHEMA)
        except BaseException:
            db.close()
            raise
        return db

    def _insert(self, row):
        columns, marks = ", ".join(self.COLUMNS), ", ".join("?" * len(row))
        with self._transaction() as db:
            db.execute(f"INSERT OR IGNORE INTO {self.TABLE} ({columns}) VALUES ({marks})", row)
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
                advice = "free some space and run the command again; no finished run is lost"
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
            if Claimant.of(owner).alive is False:
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
        """Copy the outcomes that can be read from a damaged file; their number."""
        count = 0
        with contextlib.suppress(sqlite3.Error, ValueError, TypeError):
            damaged = sqlite3.connect(f"file:{aside}?mode=ro", uri=True)
            with contextlib.closing(damaged):
                columns = ", ".join(self.COLUMNS)
                for row in damaged.execute(f"SELECT {columns} FROM {self.TABLE}"):
                    self.outcome(json.loads(row[5]))
                    self._insert(row)
                    count += 1
        return count


# The run of items on an engine.

AHEAD = 2  # items for each worker, at most: some wait for a task in their arguments
CLAIM = 4  # time limits of a run: a task and the task in its arguments, and a retry of both


def run_items(
    next_item: Callable[[], Any | None], engine: Engine, store: ResultStore, *, seconds: float,
    on_outcome: Callable[[Any, Any, bool], None], on_left: Callable[[Any, Claimant], None],
) -> None:
    """Run all items, with a task for each worker of the engine.

    Items that wait for the same task in their arguments, as the seeds of a design do for its
    netlist, need one worker together until it ends.

    An item that the store has is not run again. One that another process runs is left to it.

    Parameters
    ----------
    next_item : callable
        The next item to run; None if there is none now. It is asked again after each outcome.
    seconds : float
        Time limit of a task, after which another process may take over a lost item.
    on_outcome : callable
        Called with each item, its outcome, and whether the store had it.
    on_left : callable
        Called at the end with each item that another process has claimed and not ended, and with
        the process.
    """
    left = []

    def submit():
        while engine.ready < engine.workers and engine.pending < AHEAD * engine.workers:
            item = next_item()
            if item is None:
                return
            outcome = store.get(item)
            if outcome is None:
                other = store.claim(item, CLAIM * seconds)
                if other is not None:
                    left.append((item, other))
                    continue
                outcome = store.get(item)  # another process may have ended it meanwhile
            if outcome is None:
                engine.submit(item)
            else:
                on_outcome(item, outcome, True)

    submit()
    for item, result in engine.results():
        on_outcome(item, store.keep(item, result), False)
        submit()
    for item, other in left:
        outcome = store.get(item)
        if outcome is None:
            on_left(item, other)
        else:
            on_outcome(item, outcome, True)
