"""The store of points: the outcome of each, its layout, and the explorations."""

import json
import time
import zlib
from typing import Any

from weft.explore.points import Point, PointOutcome, versions
from weft.tasks.program import StepResult
from weft.tasks.store import ResultStore

__all__ = ["PointStore"]


class PointStore(ResultStore):
    """The outcomes of points; a context manager, as `weft.tasks.store.ResultStore` describes.

    The data of a point are its layout: the placed cells as JSON, compressed with zlib.
    """

    SCHEMA = """
    CREATE TABLE IF NOT EXISTS points (
        key TEXT PRIMARY KEY,      -- Config, device, versions, seed
        design TEXT NOT NULL,      -- the same without the seed
        point TEXT NOT NULL,       -- JSON of the Point
        versions TEXT NOT NULL,    -- JSON: tools and sources
        failure TEXT NOT NULL,     -- empty if the point is done
        outcome TEXT NOT NULL,     -- JSON of the PointOutcome
        layout BLOB,               -- the placed cells, compressed JSON
        time REAL NOT NULL         -- seconds since 1970
    );
    CREATE TABLE IF NOT EXISTS explorations (
        number INTEGER PRIMARY KEY, arguments TEXT NOT NULL, time REAL NOT NULL
    );
    """
    TABLE = "points"
    COLUMNS = "key", "design", "point", "versions", "failure", "outcome", "layout", "time"

    def versions(self) -> dict[str, str]:
        """The versions of the tools and of Weft's sources."""
        return versions()

    def group(self, item: Point) -> str:
        """The design, which all seeds share."""
        return item.design

    def item(self, values: dict[str, Any]) -> Point:
        """The point of its ``to_json``."""
        return Point.from_json(values)

    def outcome(self, values: dict[str, Any]) -> PointOutcome:
        """The outcome with these fields."""
        return PointOutcome(**values)

    def keep(self, item: Point, result: StepResult) -> PointOutcome:
        """Record the result of place and route; its outcome."""
        self.record(item, result.outcome, result.files.get("layout.json"))
        return result.outcome

    def layout(self, point: Point) -> list[list[Any]] | None:
        """The placed cells of a point: block, resource, x, y and position in the tile of each."""
        data = self.data(point)
        return None if data is None else json.loads(zlib.decompress(data))

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
