"""Points of the design space: an accelerator on a device with a seed, its outcome, the store."""

import dataclasses
import functools
import json
import time
import zlib
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from weft.boards.benchmark import source_digest
from weft.boards.devices import DEVICES, Device
from weft.boards.toolchain import VERSIONS, digest
from weft.config import Config
from weft.designs import design_from_dict, to_dict
from weft.network_core.config import NetworkCoreConfig
from weft.tasks.program import StepResult
from weft.tasks.store import ResultStore

__all__ = ["FAILURES", "PACKED", "Point", "PointOutcome", "PointStore", "versions"]


# Why a point fails, and what that means.
FAILURES = {
    "overfull": "the design needs more of a resource than the device has",
    "unroutable": "place and route found no legal placement or routing",
    "time": "a tool took longer than the time limit",
    "memory": "a tool took more memory than the limit",
    "crash": "a tool ended with another error",
}

PACKED = 0  # the seed of a design that is packed, but neither placed nor routed


@functools.cache
def versions() -> dict[str, str]:
    """What a result depends on besides Config, device and seed: tools, and Weft's sources."""
    return {"weft": metadata.version("weft"), "sources": source_digest(), **VERSIONS}


@dataclass(frozen=True)
class Point:
    """A whole accelerator with its serial port, placed and routed on a device.

    Attributes
    ----------
    device : Device
    config : Config or NetworkCoreConfig
    seed : int
        Of place and route. With `PACKED` the design is only packed: its outcome has no clock.
    """

    device: Device
    config: Config | NetworkCoreConfig
    seed: int = 1

    @functools.cached_property
    def design(self) -> str:
        """16 hexadecimal digits that all seeds of a Config on a device share."""
        fields = json.dumps(dataclasses.asdict(self.config), sort_keys=True)
        return digest("explore", sorted(versions().items()), self.device.options, fields)

    @property
    def key(self) -> str:
        """Key in the store: Config, device, versions of the tools, and seed."""
        return f"{self.design}-{self.seed}"

    def __str__(self):
        run = f"seed {self.seed}" if self.seed != PACKED else "packed"
        return f"{self.config.name} on {self.device.name}, {run}"

    def to_json(self) -> dict[str, Any]:
        """Fields as JSON values; the Config has only the fields that define it."""
        die = next(
            name for name, known in DEVICES.items() if known.capacity == self.device.capacity
        )
        values = {"device": self.device.name, "die": die, "options": list(self.device.options)}
        return values | {"config": to_dict(self.config, chosen=True), "seed": self.seed}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Point":
        """The point of `to_json`. Raises ValueError, KeyError or TypeError for other values."""
        device = dataclasses.replace(
            DEVICES[values["die"]], name=values["device"], options=tuple(values["options"])
        )
        return cls(device, design_from_dict(values["config"]), int(values["seed"]))


@dataclass(frozen=True, kw_only=True)
class PointOutcome:
    """What came of a point.

    Attributes
    ----------
    failure : str
        One of `FAILURES`; empty if the point is done.
    detail : str
        Of a failure: the resource that is missing, or the error of the tool.
    used : dict of int
        Amount of each of `weft.boards.devices.RESOURCES`.
    blocks : dict of dict of int
        The same by block of the design (`weft.boards.blocks.GROUPS`).
    fmax : float
        MHz; 0 if the design was not placed.
    path : str
        The critical path: its ends, and its delay in cells and between them.
    seconds : dict of float
        Duration of ``synthesis`` and of ``place``.
    """

    failure: str = ""
    detail: str = ""
    used: dict[str, int] = field(default_factory=dict)
    blocks: dict[str, dict[str, int]] = field(default_factory=dict)
    fmax: float = 0.0
    path: str = ""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether the design was placed and routed, or packed."""
        return not self.failure

    def __str__(self):
        if self.failure:
            return f"{self.failure}: {self.detail}"
        used = ", ".join(f"{name} {count:,}" for name, count in self.used.items() if count)
        seconds = sum(self.seconds.values())
        clock = f"; {self.fmax:.1f} MHz" if self.fmax else ""
        return f"{used}{clock}" + (f"; {seconds:.0f} s" if seconds else "")


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
