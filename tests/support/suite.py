"""A pytest plugin: runs the longest files first, and reports progress and remaining time.

``tests/durations.json`` has the CPU seconds of each file, of its quick tests and of the tests
marked ``slow`` and ``long``. ``--record-durations`` updates it.
"""

import json
import os
import resource
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

# Without bytecode each process that a test starts compiles numpy and Amaranth again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

DURATIONS = Path(__file__).resolve().parent.parent / "durations.json"
TIERS = "quick", "slow", "long"  # the last two are markers
UNKNOWN = 1.0    # seconds of a file without a record
INTERVAL = 20.0  # seconds between two lines of progress
PRIOR = 60.0     # recorded seconds; see `remaining`


def read() -> dict:
    """The record: file -> {"quick": seconds, "slow": seconds, "long": seconds}."""
    try:
        return json.loads(DURATIONS.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def file_of(node_id: str) -> str:
    """The test file of a test's id."""
    return node_id.partition("::")[0]


def remaining(elapsed: float, done: float, total: float, workers: int) -> float:
    """Remaining seconds, if ``done`` of ``total`` recorded seconds took ``elapsed``.

    The first `PRIOR` seconds count as if each worker had run at the recorded speed, because a
    worker starts with long tests and has done none of them for a while.
    """
    return (total - done) * (elapsed + PRIOR / workers) / (done + PRIOR)


def clock(seconds: float) -> str:
    """``seconds`` as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def pytest_addoption(parser):
    parser.addoption(
        "--record-durations", action="store_true",
        help=f"write the CPU seconds of each file to {DURATIONS.name}",
    )


def pytest_configure(config):
    if not hasattr(config, "workerinput"):  # the controller, or the only process
        config.pluginmanager.register(Progress(config), "progress")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Every second worker collects the files backwards; `pytest_collection_modifyitems` sorts.

    In the first run, each worker so compiles half of the files, and finds the other half compiled.
    """
    report = yield
    worker = getattr(collector.config, "workerinput", {}).get("workerid", "gw0")
    if isinstance(collector, pytest.Dir) and int(worker.removeprefix("gw")) % 2:
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)  # before pytest chooses the tests by their marks
def pytest_collection_modifyitems(config, items):
    """A case that is slow by two of its parameters is long. The longest files run first.

    So no worker starts a long file at the end.
    """
    for item in items:
        if sum(mark.name == "slow" for mark in item.iter_markers()) > 1:
            item.add_marker("long")
    record, tiers = read(), _tiers(config)
    order = {}
    for item in items:
        name = file_of(item.nodeid)
        order.setdefault(name, -_seconds(record, name, tiers))
    items.sort(key=lambda item: (order[file_of(item.nodeid)], file_of(item.nodeid)))


def _tiers(config):
    """The tiers whose tests run."""
    chosen = config.getoption("markexpr") or ""
    if chosen in TIERS:
        return [chosen]
    return [tier for tier in TIERS if f"not {tier}" not in chosen]


def _seconds(record, name, tiers):
    """The recorded seconds of the tests of a file that run."""
    kinds = record.get(name, {"quick": UNKNOWN})
    return sum(kinds.get(tier, 0.0) for tier in tiers)


def _cpu():
    """CPU seconds of this process and of its ended children."""
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Add to each report the CPU seconds since the previous report."""
    outcome = yield
    now = _cpu()
    outcome.get_result().cpu = now - getattr(item.config, "_cpu_before", 0.0)
    item.config._cpu_before = now


class Progress:
    """Counts finished tests by their recorded seconds, and prints the remaining time.

    Parameters
    ----------
    config : pytest.Config
    """

    def __init__(self, config):
        self.config, self.start = config, time.monotonic()
        self.printed = self.start
        self.workers = max(1, len(getattr(config.option, "tx", None) or ()))
        self.seconds = {}  # test -> recorded seconds
        self.done = 0.0
        self.cpu = defaultdict(lambda: dict.fromkeys(TIERS, 0.0))

    def plan(self, node_ids):
        """Record the tests to run: the seconds of a file are divided among its tests."""
        record, tests = read(), Counter(map(file_of, node_ids))
        tiers = _tiers(self.config)
        for node_id in node_ids:
            name = file_of(node_id)
            self.seconds[node_id] = max(_seconds(record, name, tiers), 0.01) / tests[name]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids):
        """Use the tests of the first worker; all workers have the same ones."""
        if not self.seconds:
            self.plan(ids)

    def pytest_collection_finish(self, session):
        """Use the collected tests of a run without workers."""
        if session.items:
            self.plan([item.nodeid for item in session.items])

    def pytest_runtest_logreport(self, report):
        kind = next((tier for tier in TIERS[::-1] if tier in report.keywords), "quick")
        self.cpu[file_of(report.nodeid)][kind] += getattr(report, "cpu", 0.0)
        if report.when != "teardown":
            return
        self.done += self.seconds.get(report.nodeid, 0.0)
        now = time.monotonic()
        if now - self.printed >= INTERVAL:
            self.printed = now
            self.report(now - self.start)

    def report(self, elapsed):
        """Print a line of progress."""
        total = sum(self.seconds.values())
        if total:
            seconds = remaining(elapsed, self.done, total, self.workers)
            share = self.done / total
            text = f"{share:4.0%} after {clock(elapsed)}, about {clock(seconds)} to go"
            reporter = self.config.pluginmanager.get_plugin("terminalreporter")
            reporter.ensure_newline()
            reporter.write_line(text)

    def pytest_sessionfinish(self):
        if self.config.getoption("record_durations"):
            durations, ran = read(), _tiers(self.config)
            for name, kinds in self.cpu.items():
                kept = {tier: s for tier, s in durations.get(name, {}).items() if tier not in ran}
                found = {tier: round(kinds[tier], 1) for tier in ran if kinds[tier] >= 0.05}
                durations[name] = kept | found
            durations = {
                name: durations[name] for name in sorted(durations) if Path(name).exists()
            }
            DURATIONS.write_text(json.dumps(durations, indent=1) + "\n", encoding="utf-8")
