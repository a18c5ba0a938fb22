"""Runs the cocotb benches on a Config in a simulator, and says how they went."""

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

from weft.config import Config
from weft.sim import build, icarus, tools, verilated
from weft.sim.bench import MODULES, PERIOD_NS

__all__ = ["SIMULATORS", "BenchError", "Outcome", "run"]

# The benches look at the ports of a design only, and signals that are public make a model slow.
_PUBLIC = '`verilator_config\npublic_flat_rw -module "{}" -var "*"\n'
_WAVES = {"icarus": "{}.fst", "verilator": "dump.vcd"}
SIMULATORS = tuple(_WAVES)
_OURS = ("COCOTB_", "PYTEST_", "SIM_CMD_")  # of the environment, what would change the run
_OTHERS = ("WAVES", "GUI", "GPI_USERS", "RANDOM_SEED")


class BenchError(RuntimeError):
    """Benches that failed, did not end or did not run; the message says why and where the log is.

    Attributes
    ----------
    outcome : Outcome or None
        Of the run, where it came to its end.
    """

    def __init__(self, message, outcome=None):
        super().__init__(message)
        self.outcome = outcome


@dataclass(frozen=True)
class Outcome:
    """How a run went.

    Attributes
    ----------
    tests, failures : int
    cycles : int
        Simulated, all tests together.
    seconds, build_seconds : float
        Of the run; of the build before it, next to 0 where one was there.
    seed : int
    log : Path
        All that the simulator said.
    waves : Path or None
    """

    simulator: str
    tests: int
    failures: int
    cycles: int
    seconds: float
    build_seconds: float
    seed: int
    log: Path
    waves: Path | None

    @property
    def cycles_per_second(self) -> float:
        """Over the whole run, its start included."""
        return self.cycles / self.seconds


def run(
    config: Config, simulator: str, *, build_dir, testcase=None, seed: int = 1, waves: bool = False,
    limit: float = 7200, verilog: str | None = None, modules=MODULES, top: str = "weft",
    facts: dict | None = None,
) -> Outcome:
    """Run benches on the Verilog of ``config``.

    Parameters
    ----------
    config : Config
    simulator : str
        One of `SIMULATORS`.
    build_dir : path
        Where logs, results and waveforms go, each run in a folder of its own.
    testcase : str or sequence of str, optional
        Names of tests; all tests where absent. A name stands for all tests of which it is the
        start, up to a ``/``.
    seed : int
        Decides all that the tests draw.
    waves : bool
        Leave a trace to open; `Outcome.waves` says where.
    limit : float
        Seconds after which a simulation counts as hanging.
    verilog : str, optional
        The Verilog, where it is known already, or is to be another one than that of ``config``.
    modules : sequence of str
        Where the tests are.
    top : str
        The module under test.
    facts : dict, optional
        Environment variables for the tests, beside ``WEFT_CONFIG``.

    Raises
    ------
    BenchError
        Where a test fails, none is run, or the simulator does not come to its end.
    weft.sim.tools.ToolError
        Where a tool is missing or too old.
    """
    if simulator not in SIMULATORS:
        raise ValueError(f"simulator must be one of {', '.join(SIMULATORS)}, not {simulator!r}")
    tool = _tool(simulator)
    name = f"{config.name}-{config.hash:08x}-{simulator}{'-waves' if waves else ''}"
    name = name if top == "weft" else f"{top}-{name}"
    place = Path(build_dir).absolute() / name
    place.mkdir(parents=True, exist_ok=True)
    title = f"benches of {config.name} on {tool.name} {tool.version}"
    with _alone(place):
        start = time.monotonic()
        text = build.verilog(config) if verilog is None else verilog
        program = _BUILDS[simulator](f"{top}-{config.name}", text, top, waves)
        built = time.monotonic()
        results, log = place / "results.xml", place / "test.log"
        results.unlink(missing_ok=True)
        _simulate(simulator, place, log, limit, f"{title}, seed {seed},", {
            "test_module": ",".join(modules), "test_filter": _filter(testcase), "seed": seed,
            "hdl_toplevel": top, "hdl_toplevel_lang": "verilog", "timescale": ("1ns", "1ps"),
            "build_dir": str(program.parent), "test_dir": str(place), "waves": waves,
            "results_xml": str(results),
            "extra_env": {"WEFT_CONFIG": json.dumps(asdict(config)), **(facts or {})},
        })
        seconds = time.monotonic() - built
        trace = place / _WAVES[simulator].format(top) if waves else None
        tests, failed, cycles = _read(results, title, log)
        outcome = Outcome(
            str(tool), tests, len(failed), cycles, seconds, built - start, seed, log, trace
        )
    if not tests:
        raise BenchError(
            f"{title} must be 1 or more, and none matched {testcase!r}; see {log}", outcome
        )
    if failed:
        lines = "".join(f"\n  {name}: {message}" for name, message in failed)
        raise BenchError(
            f"{title}, seed {seed}: {len(failed)} of {tests} failed; see {log}{lines}", outcome
        )
    return outcome


def _tool(simulator):
    tools.libpython()
    if simulator == "icarus":
        return tools.icarus()
    tools.compiler()
    return tools.verilator()


@contextlib.contextmanager
def _alone(place):
    """One run in a folder at a time: a second one would read the first one's results."""
    with open(place / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BenchError(
                f"{place} must serve one run at a time, and another one is at work"
            ) from None
        yield


def _icarus(name, verilog, top, waves):
    return icarus.program("benches", name, verilog, top=top, waves=waves)


def _verilator(name, verilog, top, waves):
    """As cocotb's own runner builds it: its harness around the class ``Vtop``."""
    from cocotb_tools import config as cocotb

    return verilated.program(
        "benches", name, [verilog], lambda: verilog,
        cocotb.share_dir / "lib" / "verilator" / "verilator.cpp", top=top, prefix="Vtop",
        file=top, control=_PUBLIC.format(top), trace=waves, vpi=True,
        link=[f"-Wl,-rpath,{cocotb.libs_dir}", f"-L{cocotb.libs_dir}", "-lcocotbvpi_verilator"],
    )


_BUILDS = {"icarus": _icarus, "verilator": _verilator}


def _simulate(simulator, place, log, limit, title, arguments):
    """Run the benches in a process of its own, which writes to ``log``; killed after ``limit``."""
    order = json.dumps({"simulator": simulator, "arguments": arguments})
    command = [sys.executable, "-m", "weft.sim.simulation", order]
    with open(log, "w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, cwd=place, env=_environment(), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise BenchError(f"{title} must end within {limit} s, and did not; see {log}") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the simulator too, whatever happened
            process.wait()
    if status:
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise BenchError(f"{title} must end with status 0, not {status}: {last}; see {log}")


def _environment():
    """The environment of this process, without the variables that would steer cocotb."""
    kept = {
        name: value for name, value in os.environ.items()
        if not name.startswith(_OURS) and name not in _OTHERS
    }
    return {**kept, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def _filter(testcase):
    """The pattern of cocotb for the tests of these names."""
    if testcase is None:
        return None
    names = [testcase] if isinstance(testcase, str) else testcase
    return rf"\.({'|'.join(map(re.escape, names))})(/.*)?$"


def _read(results, title, log):
    """Tests that ran, names and messages of those that failed, and cycles."""
    from cocotb_tools.check_results import get_results

    try:
        tests, failures = get_results(results)
    except (RuntimeError, ElementTree.ParseError):
        raise BenchError(f"{title} must leave {results.name}, and did not; see {log}") from None
    failed, cycles, skipped = [], 0.0, 0
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        for sort in ("failure", "error"):
            for found in case.iter(sort):
                failed.append((case.get("name"), found.get("message") or found.text or sort))
        skipped += case.find("skipped") is not None
        for prop in case.iter("property"):
            if prop.get("name") == "sim_time_duration":
                cycles += float(prop.get("value")) / PERIOD_NS
    if len(failed) != failures:
        raise BenchError(f"{title}: {results} must name {failures} failures, not {len(failed)}")
    return tests - skipped, failed, round(cycles)
