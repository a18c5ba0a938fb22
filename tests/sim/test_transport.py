"""The simulated transport with the driver: resident operands, and no hang on errors."""

import contextlib
import io
import os
import re
import signal
import sys

import numpy as np
import pytest
from products import exact, integers
from rejects import rejects
from tiers import tiers

from weft.commands import Job, JobFlag
from weft.config import Config
from weft.host import Accelerator
from weft.host.accelerator import AcceleratorError
from weft.host.transport import TransportClosed, TransportTimeout
from weft.sim import build, tools
from weft.sim.transport import SimTransport

SMALL = {"a_words": 512, "b_words": 512}
ODD = Config(rows=3, cols=5, depth=2, bytes_out=4, **SMALL)
FIP = Config(rows=4, cols=4, depth=4, multiplier="fip", **SMALL)
TINY = Config(
    rows=6, cols=5, depth=2, multiplier="fip", bytes_in=4, bytes_out=1, lanes=1, hop=1, **SMALL
)
ALL = pytest.mark.parametrize("config", tiers(
    {"odd": ODD, "fip": FIP, "tiny": TINY}, long={"tiny", "fip"}
))


@ALL
def test_resident_part_of_a_split_k(config, accelerators):
    # B fits and stays resident; A fits only in parts of K.
    deep = config.b_words * config.depth
    random = np.random.default_rng(4)
    b = integers(random, np.int8, deep, config.cols)
    a = integers(random, np.int8, 2 * config.rows + 1, deep)
    accelerator = accelerators(config)
    with accelerator.load(b) as weights:
        for _ in range(2):
            assert np.array_equal(accelerator.matmul(a, weights), exact(a, b))


def test_abort_ends_a_starved_job_and_the_next_job_is_correct(transports):
    transport = transports(ODD)
    fed = JobFlag.FEED_A | JobFlag.FEED_B
    starving = Job(3, 5, 4, 0, 1, 1, 0, 1, 1, tag=7, flags=fed)
    transport.send_words(starving.pack())
    with rejects(TransportTimeout, "no results within 0.3 s"):
        transport.receive(0.3)
    transport.abort(600)
    packet = transport.receive(600)
    assert (packet.tag, packet.last, packet.status.name) == (7, True, "ABORTED")
    a = np.arange(12, dtype=np.int8).reshape(3, 4)
    assert np.array_equal(Accelerator(transport).matmul(a, a.T), exact(a, a.T))


def test_cycles_do_not_depend_on_the_host(transports):
    a = np.ones((30, 40), np.int8)
    records = [Accelerator(transports(ODD)).matmul(a, a.T, record=True)[1] for _ in range(3)]
    assert len({record.cycles for record in records}) == 1


def test_rejects_a_model_that_dies():
    with contextlib.closing(SimTransport(ODD)) as transport:
        accelerator = Accelerator(transport, ODD, timeout=600)
        os.kill(transport.process.pid, signal.SIGKILL)
        with rejects(TransportClosed, "the simulation model ended unexpectedly with signal 9"):
            accelerator.matmul(np.ones((3, 4), np.int8), np.ones((4, 5), np.int8))


def test_rejects_hardware_of_another_config(transports):
    with rejects(AcceleratorError, "the core's cols must be 4, not 5"):
        Accelerator(transports(ODD), Config(rows=3, cols=4, depth=2, bytes_out=4, **SMALL))


def test_rejects_a_verilog_that_does_not_compile(monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_BUILD", str(tmp_path))
    monkeypatch.setattr("weft.hw.export.verilog", lambda config, model: "module weft(; endmodule")
    with pytest.raises(tools.ToolError) as error:
        build.model(ODD)
    assert "Verilator did not compile the 3x5x2 model and ended with status 1" in str(error.value)
    assert (tmp_path / "3x5x2.log").read_text(encoding="utf-8")
    assert not list((tmp_path / "cache" / "models").iterdir())  # no partial build


class Screen(io.StringIO):
    """A replacement of stderr that is a ``terminal`` or not."""

    def __init__(self, terminal):
        super().__init__()
        self.isatty = lambda: terminal


@pytest.fixture
def compiling(monkeypatch):
    """Replace the compilation of a model; the executable copies its input to its output."""

    def model(config, *, trace, say):
        say("compiling the model (once)")
        return "/bin/cat"

    monkeypatch.setattr(build, "model", model)


def test_reports_a_compilation_to_a_terminal(compiling, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Screen(True))
    SimTransport(ODD).close()
    assert re.fullmatch(
        r"weft: compiling the model \(once\)\nweft: the 3x5x2 model is ready after \d+ s\n",
        sys.stderr.getvalue(),
    )


@pytest.mark.parametrize("screen", [Screen(False), None])
def test_is_silent_without_a_terminal(compiling, monkeypatch, screen):
    monkeypatch.setattr(sys, "stderr", screen)
    SimTransport(ODD).close()
    assert screen is None or screen.getvalue() == ""


def test_reports_a_compilation_to_say(compiling, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Screen(True))
    lines = []
    SimTransport(ODD, say=lines.append).close()
    assert (lines, sys.stderr.getvalue()) == (["compiling the model (once)"], "")


def test_builds_once(monkeypatch):
    lines = []
    first = build.model(ODD, say=lines.append)
    assert build.model(ODD, say=lines.append) == first
    assert len(lines) <= 1
