"""Shared fixtures: simulated accelerators, TFLite Micro, and random sums close to ties."""

import gc
import importlib.util
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

# Workers use one core each; they inherit the environment. numpy reads it when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from amaranth.hdl import _nir
from tflite_files import runner

from tools.tflite_writer import fully_connected_file
from verif import yosys
from weft.cycles.array import Array
from weft.host import Accelerator
from weft.host.tcp import listen
from weft.host.transport import TransportError
from weft.sim import cache
from weft.sim.transport import SimTransport

pytest_plugins = ["suite"]
LIBRARY = cache.root() / "runtime"  # Verilator's library in the user's cache, from the set-up
os.environ.setdefault("WEFT_BUILD", str(Path(__file__).parent.parent / "build"))
LOW, HIGH = -(1 << 31), (1 << 31) - 1

# Elaboration creates millions of long-lived objects. With the default thresholds, garbage
# collection doubles the time of the tests.
gc.set_threshold(200_000, 20, 100)

yosys.load_once()


def _value(cls, nets=()):
    """A value of an exported design without the check of the type of each net.

    The check takes a quarter of the time of an export, and changes no text.
    """
    return tuple.__new__(cls, (nets,) if isinstance(nets, _nir.Net) else nets)


_nir.Value.__new__ = _value


def pytest_configure(config):
    """Copy Verilator's library into the cache of the tests, once."""
    copy = cache.root() / "runtime"
    if not hasattr(config, "workerinput") and LIBRARY.exists() and not copy.exists():
        part = copy.with_name(".runtime")
        shutil.copytree(LIBRARY, part, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
        part.rename(copy)


def pytest_collection_finish():
    """Exclude the modules and the tests, which stay, from all later garbage collections."""
    gc.freeze()


@pytest.fixture(scope="session")
def transports():
    """``transports(config)``: the simulated transport of a Config, shared by all tests."""
    running = {}

    def transport(config):
        if config not in running:
            running[config] = SimTransport(config)
        return running[config]

    yield transport
    for one in running.values():
        one.close()


@pytest.fixture
def accelerators(transports):
    """``accelerators(config)``: the driver on the simulated transport of a Config."""
    return lambda config: Accelerator(transports(config), config)


@pytest.fixture(scope="session")
def tflm():
    """``tflm(file)``: ``run(x)`` in TFLite Micro, for one ``x`` without its batch.

    Only if it rounds twice: a build with single rounding implements another mode.
    """
    if importlib.util.find_spec("tflite_micro") is None:
        pytest.skip("TFLite Micro is not installed: its wheels are for Linux on x86_64")

    def one(data):
        run = runner(data)
        return lambda x: run(x[None])[0][0]

    # -0.5 in the second rounding, and 2**29 * 32.
    results = []
    for acc, scale in [(-2, 0.25), (1 << 29, 32)]:
        layer = SimpleNamespace(
            weights=np.ones((1, 1), np.int8), bias=np.array([acc], np.int32), x_scale=1,
            w_scale=scale, y_scale=1, x_zero_point=0, y_zero_point=0,
        )
        run = one(fully_connected_file([layer], [0]))
        results.append(int(run(np.zeros(1, np.int8))[0]))
    if results != [-1, 0]:
        pytest.skip(f"TFLite Micro must round twice and wrap, [-1, 0], not {results}")
    return one


@pytest.fixture(scope="session")
def mlperf_tiny():
    """The folder with the networks of MLPerf Tiny and their results in TFLite Micro."""
    if "WEFT_NETWORKS" not in os.environ:
        pytest.skip("WEFT_NETWORKS must name a folder with the networks of MLPerf Tiny")
    return Path(os.environ["WEFT_NETWORKS"])


@pytest.fixture
def passes(monkeypatch):
    """A list with an item for each pass that the cycle model computes."""
    found, run = [], Array.run
    monkeypatch.setattr(Array, "run", lambda *args: found.append(1) or run(*args))
    return found


@pytest.fixture
def has_ipv6():
    """Skip the test on a machine without IPv6."""
    try:
        listen("::1").close()
    except TransportError:
        pytest.skip("this machine has no IPv6")


@pytest.fixture
def in_checkout(monkeypatch):
    """Run in the checkout, so that hints do not name its folder."""
    monkeypatch.chdir(Path(__file__).parent.parent)


@pytest.fixture
def sums():
    """``sums(rng, scale)``: random int32 of all sizes for each scale, most of them near a tie."""
    return _sums


@pytest.fixture
def triples():
    """``triples(rng, count)``: random int32 vectors of sums, multipliers and shifts."""
    return _triples


def _sums(rng, scale):
    count = len(scale)
    kinds = np.array([
        rng.integers(LOW, HIGH, count, endpoint=True) >> rng.integers(0, 32, count),
        _near(rng, scale, (rng.integers(-300, 300, count) + 0.5)),  # ties of 8-bit results
        _near(rng, scale, (rng.integers(-(1 << 30), 1 << 30, count) >> 8) + 0.5),
        _near(rng, scale, rng.choice([LOW, HIGH], count)),          # where results exceed int32
        rng.choice([LOW, LOW + 1, -2, -1, 0, 1, 2, HIGH - 1, HIGH], count),
        rng.choice([-1, 1], count) * (1 << rng.integers(0, 31, count)),
    ])
    return kinds[rng.integers(0, len(kinds), count), np.arange(count)].astype(np.int32)


def _near(rng, scale, result):
    """The sum whose scaled value is next to ``result``, or a neighbour of that sum."""
    exact = np.rint(result / scale) + rng.integers(-1, 2, len(scale))
    return np.clip(exact, LOW, HIGH).astype(np.int64)


def _triples(rng, count):
    kinds = np.array([
        rng.integers(1 << 30, HIGH, count, endpoint=True),
        rng.choice([1 << 30, (1 << 30) + 1, 3 << 29, HIGH - 1, HIGH], count),
        (1 << 30) + (1 << rng.integers(0, 30, count)),
        np.full(count, 1 << 30),  # a power of two: exact ties
    ])
    multiplier = kinds[rng.integers(0, len(kinds), count), np.arange(count)]
    shift = rng.integers(-31, 31, count, endpoint=True)
    acc = _sums(rng, multiplier * 2.0 ** (shift - 31))
    multiplier[rng.random(count) < 0.01] = 0
    return acc, multiplier.astype(np.int32), shift.astype(np.int32)
