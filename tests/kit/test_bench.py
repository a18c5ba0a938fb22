"""The bench of a kit: it needs no weft, passes on a correct core, and fails on a broken one."""

import os
import re
import subprocess
import sys

import pytest

from weft.buses import BUSES
from weft.kit.folder import write

TESTS = 8  # for every bus; with bus stream one of them is skipped, and counts as passed


def run(folder, files):
    """Run the bench on Icarus in a new folder, where an import of weft fails."""
    write(folder / "kit", files)
    (folder / "blocked" / "weft").mkdir(parents=True)
    (folder / "blocked" / "weft" / "__init__.py").write_text("raise ImportError('not allowed')\n")
    (folder / "work").mkdir()
    return subprocess.run(
        [sys.executable, folder / "kit" / "bench" / "run.py", "icarus"], cwd=folder / "work",
        env={**os.environ, "PYTHONPATH": str(folder / "blocked")}, capture_output=True, text=True,
    )


@pytest.mark.parametrize("bus, more", [
    *(pytest.param(bus, {}, marks=[] if bus == "axi" else pytest.mark.slow) for bus in BUSES),
    pytest.param(
        "axi", {"target": "ecp5", "rows": 1, "cols": 2, "lanes": 1, "activation": "none",
                "prefix": "mm"}, marks=pytest.mark.slow,
    ),
])
def test_passes(kits, bus, more, tmp_path):
    ip, files = kits(bus, **more)
    done = run(tmp_path, files)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    last = done.stdout.splitlines()[-1]
    assert last.strip() == f"{ip.name} on icarus: {TESTS} of {TESTS} tests passed"


def test_fails_on_an_inverted_interrupt(kits, tmp_path):
    ip, files = kits("axi")
    text = files[f"{ip.name}.v"].decode()  # the top module comes first
    broken = text.replace("    .irq(irq),", "    .irq(irq_n),", 1)
    broken = broken.replace("  wire irq;", "  wire irq; wire irq_n; assign irq = ~irq_n;", 1)
    assert broken.count("irq_n") == 3
    done = run(tmp_path, {**files, f"{ip.name}.v": broken.encode()})
    assert done.returncode == 1
    assert re.search(r"test_weft.interrupts +FAIL", done.stdout + done.stderr)


def test_rejects_an_unknown_simulator(kits, tmp_path):
    write(tmp_path, kits("axi")[1])
    done = subprocess.run(
        [sys.executable, "run.py", "modelsim"], cwd=tmp_path / "bench", capture_output=True,
        text=True, timeout=600,
    )
    text = "simulator must be icarus or verilator, not modelsim\n"
    assert (done.returncode, done.stderr) == (2, text)
