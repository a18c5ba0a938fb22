"""The time of an inference over a serial port: networks of MLPerf Tiny on simulated boards."""

import tempfile
from pathlib import Path

import numpy as np

from tools.network_core_networks import RUNS
from weft.host.network_driver import NetworkDriver
from weft.models.loading import load
from weft.sim.transport import SimBoardTransport

__all__ = ["ABOUT", "HEADS", "rows"]

TIMEOUT = 600.0  # seconds of a wait; the program is loaded bit by bit, at the speed of a simulation
ABOUT = """\
One inference of the networks of MLPerf Tiny on the [network cores](../network-core.md), at their
clock and baud rate, bit by bit. The program is loaded before. **Time** begins with the first bit
of the input and ends with the last bit of the result. It includes START, the list, and the reads
of NET_STATUS. **Core** is the time of the list. **Goal** is the largest time that the project
accepts. Each result equals TensorFlow Lite Micro."""
HEADS = """\
| network | core | clock | bytes sent | bytes received | wire | core | time | goal |
|---|---|---:|---:|---:|---:|---:|---:|---:|
"""


def rows(folder: Path):
    """Yield the lines of the table; ``folder`` has the networks and their results."""
    for run in RUNS:
        sent, received, core, cycles = _measure(run, folder)
        wire = max(sent, received) * 10 * _divisor(run.design)
        ms = [f"{count / run.design.clock / 1e3:.2f} ms" for count in (wire, core, cycles)]
        yield (
            f"| {run.name} | {run.core} | {run.design.clock:g} MHz | {sent:,} | {received:,}"
            f" | {' | '.join(ms)} | {run.wire_goal} ms |\n"
        )


def _divisor(design):
    """Clock cycles of a bit."""
    return round(design.clock * 1e6 / design.baud)


def _measure(run, folder):
    """Return the bytes to and from the board, the cycles of the list, and all cycles.

    Raises SystemExit if the result differs from TensorFlow Lite Micro.
    """
    program = load(folder / f"{run.file}.tflite").compile(run.design.config)
    vectors = np.load(folder / f"{run.file}.npz")
    with tempfile.TemporaryDirectory() as scratch:
        events = Path(scratch) / "events"
        transport = SimBoardTransport(
            run.design.config, divisor=_divisor(run.design), events=events, say=print
        )
        driver = NetworkDriver(transport, run.design.config, timeout=TIMEOUT)
        with program.open(driver, timeout=TIMEOUT) as session:
            session(vectors["model_in"][0])
            before = len(byte_times(events))
            result = session(vectors["model_in"][1])
            found = byte_times(events)[before:]
            core = session.cycles
    if not np.array_equal(result.reshape(-1), vectors["model_out_tflm"][1].reshape(-1)):
        raise SystemExit(f"{run.name}: the result differs from TensorFlow Lite Micro")
    sent = [cycle for direction, cycle in found if direction == ">"]
    received = [cycle for direction, cycle in found if direction == "<"]
    return len(sent), len(received), core, received[-1] - sent[0]


def byte_times(events) -> list[tuple[str, int]]:
    """The direction and the cycle of each byte on the serial port."""
    lines = events.read_text(encoding="ascii").splitlines()
    return [(line[0], int(line[2:])) for line in lines]
