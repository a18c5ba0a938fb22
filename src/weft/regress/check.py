"""The process of one case: lint, random products, or the cocotb benches in a simulator.

    python -m weft.regress.check

It works in the current folder. ``case.json`` has the `Case`. ``outcome.json`` gets the fields of a
`CaseOutcome`, and ``test.log`` the output of the simulator. Any other program with these files can
take the place of this one.

The random products run back to back, without a reset. Results are compared with the golden models
bit by bit, and cycles with the cycle model.
"""

import contextlib
import json
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from weft import golden
from weft.config import Config
from weft.dtypes import DTYPES
from weft.files import write_bytes, write_text
from weft.geometry import operands
from weft.host import Accelerator
from weft.host.emulated import GoldenTransport
from weft.regress.case import CHECKS, LOG, Case, CaseOutcome, versions
from weft.sim.build import lint
from weft.sim.runner import BenchError, run
from weft.sim.transport import SimTransport
from weft.tasks.engine import Task
from weft.tasks.program import RunLimits, StepResult, end_with_parent, run_program
from weft.tasks.store import ResultStore

__all__ = ["COMMAND", "CaseStore", "CaseWork", "checked", "main", "run_products"]

COMMAND = sys.executable, "-m", "weft.regress.check"
PRODUCTS = 6  # on each Config
MAX_K = 1500  # of a product
SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 2.0**-126, 3.3e38, -3.3e38, 1], np.float32
)


def checked(case: Case, folder: Path) -> CaseOutcome:
    """Run a case in a folder; any failure is an outcome."""
    start = time.monotonic()
    try:
        found = _CHECKS.get(case.check, _benches)(case, folder)
    except Exception:  # of a broken design or a missing tool; the outcome has the text
        found = {"failure": "error", "detail": traceback.format_exc().strip()}
    return CaseOutcome(**found, seconds=round(time.monotonic() - start, 2))


def main() -> int:
    """Run the case of the current folder."""
    end_with_parent()
    case = Case.from_json(json.loads(Path("case.json").read_text(encoding="utf-8")))
    outcome = checked(case, Path.cwd())
    write_text(Path("outcome.json"), json.dumps(asdict(outcome)))
    return 0


def _wrong(text):
    return {"failure": "wrong", "detail": text.strip()} if text else {}


def _benches(case, folder):
    try:
        outcome = run(
            case.config, case.check, build_dir=folder / "bench", testcase=case.tests or None,
            seed=case.seed,
        )
    except BenchError as error:
        counts, text = _counts(error.outcome), str(error)
        for log in (folder / "bench").rglob(LOG):
            write_bytes(folder / LOG, log.read_bytes())
            text = text.replace(str(log), LOG)
        return counts | _wrong(text)
    return _counts(outcome)


def _counts(outcome):
    return {} if outcome is None else {"tests": outcome.tests, "cycles": outcome.cycles}


_CHECKS = {
    "lint": lambda case, folder: _wrong(lint(case.config)),
    "products": lambda case, folder: _wrong(run_products(case.config, case.seed)),
}


def run_products(config: Config, seed: int) -> str:
    """The first problem with the products of a seed; empty without a problem."""
    rng = np.random.default_rng([seed, config.hash])
    draw = _DRAWS[config.dtype]
    with (
        Accelerator(SimTransport(config), config) as simulated,
        Accelerator(GoldenTransport(config), config) as model,
    ):
        for _ in range(PRODUCTS):
            a, b, options, expected = draw(rng, config, *_shape(rng, config))
            resident = rng.random() < 0.2 and _fits(config, b)
            product = f"{a.dtype}{list(a.shape)} @ {b.dtype}{list(b.shape)}, {list(options)}"
            outcomes = []
            for accelerator in (simulated, model):
                with accelerator.load(b) if resident else contextlib.nullcontext(b) as right:
                    outcomes.append(accelerator.matmul(a, right, **options, record=True))
            (result, record), (_, predicted) = outcomes
            if (result.dtype, result.shape) != (expected.dtype, expected.shape):
                types = f"{expected.dtype}{expected.shape}, not {result.dtype}{result.shape}"
                return f"{product} must be {types}"
            if result.tobytes() != expected.tobytes():
                return f"{product} must be\n{expected}\nnot\n{result}"
            if record != predicted:
                return f"{product} must take {predicted}, not {record}"
    return ""


def _shape(rng, config):
    """M, K and N: 1, full and partial tiles; sometimes a K that must be split."""
    a, b = operands(config)
    m, n = (
        int(rng.choice([1, edge, 2 * edge, rng.integers(1, 3 * edge + 2)]))
        for edge in (a.edge, b.edge)
    )
    room = min(a.words, b.words) * a.depth
    deep = min(MAX_K, int(rng.integers(room, 2 * room)))
    k = rng.choice([1, config.depth, rng.integers(1, 5 * config.depth + 9), deep])
    return m, int(k), n


def _fits(config, b):
    """Whether B fits in its buffer."""
    operand, (k, n) = operands(config)[1], b.shape
    return operand.panels(n) * operand.panel_pages(k) <= operand.pages


def _integers(rng, config, m, k, n):
    """Operands, options and expected results of an INT8 product."""
    kinds = [np.int8, np.uint8]
    scales = config.requantize != "none" and rng.random() < 0.7
    columns = config.b_zero_point == "column" or not scales
    a = _bytes(rng, rng.choice(kinds), m, k)
    b = _bytes(rng, rng.choice(kinds) if columns else np.int8, k, n)
    zero_points = {}
    if rng.random() < 0.6:
        zero_points["a_zero_point"] = _bytes(rng, a.dtype, *(() if scales else _each(rng, m)))
    if columns and rng.random() < 0.6:
        zero_points["b_zero_point"] = _bytes(rng, b.dtype, *_each(rng, n))
    bias = rng.integers(-(1 << 16), 1 << 16, _each(rng, n))
    sums = golden.add_bias(golden.matmul(a, b, **zero_points), bias)
    options = zero_points | {"bias": bias}
    if not scales:
        return a, b, options, sums
    more, table = _scaling(rng, config, k, n)
    results = golden.requantize(sums, **more, mode=config.requantize)
    if table is not None:
        results = golden.activate(results, table)
        more["activation"] = table
    return a, b, options | {"out_dtype": more.pop("dtype")} | more, results


def _scaling(rng, config, k, n):
    """Arguments of golden's ``requantize``, and an activation table or None."""
    kind = rng.choice([np.int8, np.uint8])
    any_scale = rng.random() < 0.2  # not only scales that suit the sums
    options = {"dtype": kind, "zero_point": int(_bytes(rng, kind))}
    if rng.random() < 0.5:
        options["low"], options["high"] = sorted(int(y) for y in _bytes(rng, kind, 2))
    if config.requantize == "onnx":
        low, high = (-126, 127) if any_scale else (-14, -6)
        options["scale"] = np.float32(2.0 ** rng.uniform(low, high, _each(rng, n)))
    else:
        limit = -6 - k.bit_length() // 2
        low, high = (-31, 31) if any_scale else (limit - 3, limit)
        multiplier = rng.integers(1 << 30, 1 << 31, each := _each(rng, n))
        options["multiplier"] = np.where(rng.random(each) < 0.05, 0, multiplier)
        options["shift"] = rng.integers(low, high, _each(rng, n), endpoint=True)
    table = config.activation == "table" and rng.random() < 0.5
    return options, _bytes(rng, kind, 256) if table else None


def _floats(rng, config, m, k, n):
    """Operands, options and expected results of a BF16 product."""
    share = rng.choice([0, 0.01, 0.3])

    def numbers(*shape):
        values = rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 9, shape)
        return np.where(rng.random(shape) < share, rng.choice(SPECIAL, shape), values)

    a, b = (numbers(*shape).astype(bfloat16) for shape in ((m, k), (k, n)))
    options, start, limits = {}, None, {}
    if config.c_words and rng.random() < 0.7:
        name, shape = [("c", (m, n)), ("c", (m, 1)), ("bias", (n,))][rng.integers(3)]
        start = options[name] = numbers(*shape).astype(np.float32)
    results = golden.matmul_bf16(a, b, start=start, flush_subnormals=config.flush_subnormals)
    if config.activation == "clamp" and rng.random() < 0.6:
        ends = rng.standard_normal((2, *_each(rng, n))).astype(np.float32)
        limits = {"low": ends.min(0), "high": ends.max(0)}
        results = golden.clamp(results, **limits)
    if rng.random() < 0.5:
        options["out_dtype"] = bfloat16
        results = golden.to_bfloat16(results)
    return a, b, options | limits, results


def _bytes(rng, kind, *shape):
    """Numbers over the whole range of a type, or only its extremes."""
    info = np.iinfo(kind)
    if rng.random() < 0.2:
        return rng.choice([info.min, info.max], shape).astype(kind)
    return rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)


def _each(rng, n):
    """The shape of a parameter: one number, or one for each of ``n`` columns or rows."""
    return (n,) if rng.random() < 0.5 else ()


# By the name of the data type: operands, options and expected results of a product.
_DRAWS = DTYPES.layer("regress", int8=_integers, bf16=_floats)


if __name__ == "__main__":
    sys.exit(main())


@dataclass(frozen=True)
class CaseWork:
    """How cases run; the work of an engine (`weft.tasks.engine.Work`).

    Attributes
    ----------
    checks : sequence of str
        The checks whose programs every machine must have.
    limits : RunLimits
    command : sequence of str
        The program of a case, as `weft.regress.check` describes it.
    """

    checks: Sequence[str] = tuple(CHECKS)
    limits: RunLimits = RunLimits()
    command: Sequence[str] = COMMAND

    def task(self, case: Case) -> Task:
        """Run a case in a process of its own."""
        return Task(f"case-{case.key}", self.run, (case,))

    def failed(self, detail: str) -> StepResult:
        """The result of a case whose worker failed or was lost."""
        return StepResult(CaseOutcome(failure="crash", detail=detail))

    def versions(self) -> dict[str, str]:
        """The versions of Weft and of the simulators in this process."""
        return versions()

    def set_up(self) -> None:
        """Find the programs of the checks on this machine; raises ToolError."""
        for check in self.checks:
            for tool in CHECKS[check]:
                tool()

    def run(self, case: Case, stopped: Callable[[], bool] = lambda: False) -> StepResult:
        """The outcome of a case, with the log of the simulator if a bench failed."""
        text = json.dumps(case.to_json()).encode()
        return run_program(
            self.command, {"case.json": zlib.compress(text)}, CaseOutcome, subfolder="regress",
            title=str(case), limits=self.limits, stopped=stopped,
            outputs=lambda outcome: (LOG,) if outcome.has_log else (),
        )


class CaseStore(ResultStore):
    """The outcomes of cases; a context manager, as `weft.tasks.store.ResultStore` describes.

    The data of a case are the log of its simulator, compressed with zlib, if a bench failed.
    """

    SCHEMA = """
    CREATE TABLE IF NOT EXISTS cases (
        key TEXT PRIMARY KEY,      -- Config, check, seed, tests, versions
        design TEXT NOT NULL,      -- name of the Config in the matrix
        case_json TEXT NOT NULL,   -- JSON of the Case
        versions TEXT NOT NULL,    -- JSON: sources, packages, simulators
        failure TEXT NOT NULL,     -- empty if the case passed
        outcome TEXT NOT NULL,     -- JSON of the CaseOutcome
        log BLOB,                  -- output of the simulator, compressed
        time REAL NOT NULL         -- seconds since 1970
    );
    """
    TABLE = "cases"
    COLUMNS = "key", "design", "case_json", "versions", "failure", "outcome", "log", "time"

    def versions(self) -> dict[str, str]:
        """The versions of Weft's sources, of packages and of the simulators."""
        return versions()

    def group(self, item: Case) -> str:
        """The name of the Config in the matrix."""
        return item.design

    def item(self, values: dict[str, Any]) -> Case:
        """The case of its ``to_json``."""
        return Case.from_json(values)

    def outcome(self, values: dict[str, Any]) -> CaseOutcome:
        """The outcome with these fields."""
        return CaseOutcome(**values)

    def keep(self, item: Case, result: StepResult) -> CaseOutcome:
        """Record the result of a case if its outcome is final; its outcome."""
        if result.outcome.final:
            self.record(item, result.outcome, result.files.get(LOG))
        return result.outcome
