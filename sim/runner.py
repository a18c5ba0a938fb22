"""Runs the cocotb benches on a Config in a simulator and returns the outcome."""

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
from weft.sim import build, tools, verilated
from weft.sim.bench import MODULES, PERIOD_NS

__all__ = ["SIMULATORS", "BenchError", "Outcome", "run"]

# The benches use only ports of a design; other public signals would make the model slower.
_PUBLIC = '`verilator_config\npublic_flat_rw -module "{}" -var "*"\n'
SIMULATORS = "icarus", "verilator"
_PREFIXES = ("COCOTB_", "PYTEST_", "SIM_CMD_")  # environment variables that would change the run
_NAMES = ("WAVES", "GUI", "GPI_USERS", "RANDOM_SEED")


class BenchError(RuntimeError):
    """Benches failed, did not end or did not run; the message has the reason and the log file.

    Attributes
    ----------
    outcome : Outcome or None
        The outcome, if the run came to its end.
    """

    def __init__(self, message, outcome=None):
        super().__init__(message)
        self.outcome = outcome


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    Attributes
    ----------
    tests, failures : int
    cycles : int
        Simulated cycles of all tests.
    seconds, build_seconds : float
        Duration of the run, and of the build before it; close to 0 for a build in the cache.
    seed : int
    log : Path
        Output of the simulator.
    """

    simulator: str
    tests: int
    failures: int
    cycles: int
    seconds: float
    build_seconds: float
    seed: int
    log: Path


def run(
    config: Config, simulator: str, *, build_dir, testcase=None, seed: int = 1,
    limit: float = 7200, verilog: str | None = None, modules=MODULES, top: str = "weft",
    env: dict | None = None, waves: bool = False,
) -> Outcome:
    """Run benches on the Verilog of ``config``.

    Parameters
    ----------
    config : Config
    simulator : str
        One of `SIMULATORS`.
    build_dir : path
        Folder for logs and results; each design and simulator has its own folder in it.
    testcase : str or sequence of str, optional
        Names of tests; all tests if absent. A name selects all parameters of a test: they follow
        the name after a ``/``.
    seed : int
        Seed of all random choices of the tests.
    limit : float
        Seconds after which a simulation is killed.
    verilog : str, optional
        Verilog to use instead of the Verilog of ``config``.
    modules : sequence of str
        Modules with the tests.
    top : str
        The module under test.
    env : dict, optional
        Environment variables for the tests, in addition to ``WEFT_CONFIG``.
    waves : bool
        Verilator only: write a trace of all signals into ``dump.vcd``, beside the log.

    Raises
    ------
    BenchError
        If a test fails, no test runs, or the simulator does not end.
    weft.sim.tools.ToolError
        If a tool is missing or too old.
    """
    if simulator not in SIMULATORS:
        raise ValueError(f"simulator must be one of {', '.join(SIMULATORS)}, not {simulator!r}")
    tool = _tool(simulator)
    name = f"{config.name}-{config.hash:08x}-{simulator}"
    name = name if top == "weft" else f"{top}-{name}"
    folder = Path(build_dir).absolute() / name
    folder.mkdir(parents=True, exist_ok=True)
    title = f"benches of {config.name} on {tool.name} {tool.version}"
    with _locked(folder):
        start = time.monotonic()
        text = build.verilog(config) if verilog is None else verilog
        executable = _BUILDS[simulator](f"{top}-{config.name}", text, top, waves)
        built = time.monotonic()
        results, log = folder / "results.xml", folder / "test.log"
        results.unlink(missing_ok=True)
        _simulate(simulator, folder, log, limit, f"{title}, seed {seed},", {
            "test_module": ",".join(modules), "test_filter": _filter(testcase), "seed": seed,
            "hdl_toplevel": top, "hdl_toplevel_lang": "verilog", "timescale": ("1ns", "1ps"),
            "build_dir": str(executable.parent), "test_dir": str(folder),
            "results_xml": str(results), "waves": waves,
            "extra_env": {"WEFT_CONFIG": json.dumps(asdict(config)), **(env or {})},
        })
        seconds = time.monotonic() - built
        tests, failed, cycles = _read(results, title, log)
        outcome = Outcome(
            str(tool), tests, len(failed), cycles, seconds, built - start, seed, log
        )
    if not tests:
        raise BenchError(
            f"{title}: no test matches {testcase!r}; see {log}", outcome
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
def _locked(folder):
    """Allow one run in a folder at a time; a second run would read the results of the first."""
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BenchError(
                f"another run uses {folder}; wait until it ends"
            ) from None
        yield


def _icarus(name, verilog, top, waves):
    return build.executable("benches", name, verilog, top=top)


def _verilator(name, verilog, top, waves):
    """Built as by cocotb's own runner: its harness with the class ``Vtop``."""
    from cocotb_tools import config as cocotb

    return verilated.executable(
        "benches", name, [verilog], lambda: verilog,
        cocotb.share_dir / "lib" / "verilator" / "verilator.cpp", top=top, prefix="Vtop",
        file=top, control=_PUBLIC.format(top), vpi=True, trace=waves,
        defines=["VM_TRACE=1"] if waves else [],
        link=[f"-Wl,-rpath,{cocotb.libs_dir}", f"-L{cocotb.libs_dir}", "-lcocotbvpi_verilator"],
    )


_BUILDS = {"icarus": _icarus, "verilator": _verilator}


def _simulate(simulator, folder, log, limit, title, arguments):
    """Run the benches in a process that writes to ``log``; it is killed after ``limit`` seconds."""
    request = json.dumps({"simulator": simulator, "arguments": arguments})
    command = [sys.executable, "-m", "weft.sim.tools", request]
    with open(log, "w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(), stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise BenchError(f"{title} did not end within {limit} s; see {log}") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # kills the simulator too
            process.wait()
    if status:
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise BenchError(f"{title} ended with status {status}: {last}; see {log}")


def _environment():
    """The environment of this process without the variables that configure cocotb.

    cocotb loads pytest for its messages; the plugins of pytest would only take time.
    """
    inherited = {
        name: value for name, value in os.environ.items()
        if not name.startswith(_PREFIXES) and name not in _NAMES
    }
    path = os.pathsep.join(p for p in sys.path if p)
    return {**inherited, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def _filter(testcase):
    """cocotb's pattern for the tests of these names."""
    if testcase is None:
        return None
    names = [testcase] if isinstance(testcase, str) else testcase
    return rf"\.({'|'.join(map(re.escape, names))})(/.*)?$"


def _read(results, title, log):
    """Number of tests that ran, names and messages of the failed tests, and cycles."""
    from cocotb_tools.check_results import get_results

    try:
        tests, failures = get_results(results)
    except (RuntimeError, ElementTree.ParseError):
        raise BenchError(f"{title} wrote no {results.name}; see {log}") from None
    failed, cycles, skipped = [], 0.0, 0
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        for kind in ("failure", "error"):
            for problem in case.iter(kind):
                failed.append((case.get("name"), problem.get("message") or problem.text or kind))
        skipped += case.find("skipped") is not None
        for prop in case.iter("property"):
            if prop.get("name") == "sim_time_duration":
                cycles += float(prop.get("value")) / PERIOD_NS
    if len(failed) != failures:
        raise BenchError(f"{title}: {results} has {len(failed)} failures, not {failures}")
    return tests - skipped, failed, round(cycles)
