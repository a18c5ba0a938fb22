"""Results of place and route with several seeds, and a cache of results on disk."""

import contextlib
import functools
import hashlib
import json
import statistics
from dataclasses import dataclass, field
from pathlib import Path

import weft.config
import weft.hw
from weft.boards import presets
from weft.boards.pnr_result import PnrResult
from weft.files import write_text

__all__ = ["ResultCache", "SeedResults", "source_digest"]


class ResultCache:
    """Results on disk, by a key made of everything that the result depends on.

    Parameters
    ----------
    folder : Path
        Holds one JSON file for each key.
    """

    def __init__(self, folder: Path):
        self._folder = Path(folder)

    def get(self, key: str, make):
        """The cached value of ``key``; the first time ``make()``, which must return JSON data."""
        value = self.find(key)
        if value is None:
            value = make()
            self.keep(key, value)
        return value

    def find(self, key: str):
        """The cached value of ``key``; None if there is none."""
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            return json.loads((self._folder / f"{key}.json").read_text(encoding="utf-8"))

    def keep(self, key: str, value) -> None:
        """Keep a value, which must be JSON data."""
        file = self._folder / f"{key}.json"
        self._folder.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(value))


@dataclass(frozen=True)
class SeedResults:
    """The results of one design on its device.

    Attributes
    ----------
    design : str
        16 hexadecimal digits: a digest of the netlist and of the tool versions.
    by_seed : dict of PnrResult
        The result of place and route for each seed.
    failed : dict of str
        The error of the tool for each seed that has no result.
    """

    design: str
    by_seed: dict[int, PnrResult] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)

    @property
    def best(self) -> PnrResult:
        """The result with the highest fmax."""
        return max(self.by_seed.values(), key=lambda result: result.fmax)

    @property
    def median(self) -> float:
        """The median of fmax over the seeds, in MHz."""
        return statistics.median(result.fmax for result in self.by_seed.values())


@functools.cache
def source_digest() -> str:
    """16 hexadecimal digits: a digest of all sources that designs and cycle counts depend on."""
    sources = hashlib.sha256(Path(presets.__file__).read_bytes())
    base, hardware = (Path(module.__file__).parent for module in (weft.config, weft.hw))
    folders = *(base / name for name in ("buses", "cycles", "dtypes", "network_core")), hardware
    paths = [*base.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))]
    for path in sorted(paths):
        sources.update(path.read_bytes())
    return sources.hexdigest()[:16]
