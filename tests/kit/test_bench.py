"""The bench of a kit: it needs no weft, passes on a correct core, and fails on a broken one."""

import json
import os
import re
import subprocess
import sys

import pytest

from weft.buses import BUSES
from weft.kit.folder import write

NETWORK_TESTS = 11
PROGRAM = {"read_vectors": 2, "program_words": 1024}
# The bus of the quick test, and those that have most of their bench from another.
MARKS = dict.fromkeys(("stream", "apb", "wishbone"), pytest.mark.long)
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
    *(pytest.param(bus, {}, marks=MARKS.get(bus, pytest.mark.slow)) for bus in BUSES),
    pytest.param(
        "axi", {"target": "ecp5", "rows": 1, "cols": 2, "lanes": 1, "activation": "none",
                "prefix": "mm"}, marks=pytest.mark.long,
    ),
])
def test_passes(kits, bus, more, tmp_path):
    ip, files = kits(bus, **more)
    done = run(tmp_path, files)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    last = done.stdout.splitlines()[-1]
    assert last.strip() == f"{ip.name} on icarus: {TESTS} of {TESTS} tests passed"


@pytest.mark.parametrize("bus, fields", [
    pytest.param(bus, fields, marks=mark) for mark, cases in (
        (pytest.mark.slow, [
            ("axi", PROGRAM),
        ]),
        (pytest.mark.long, [
            ("axi", {}), ("apb", {}), ("wishbone", {}), ("wishbone", {"pipelined": True}),
            ("axi", {"words": 64}),
            ("axi", {"program_words": 16}),
        ]),
    ) for bus, fields in cases
])
def test_passes_with_a_network_core(kits, bus, fields, tmp_path):
    ip, files = kits("networks", core=bus, **fields)
    done = run(tmp_path, files)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    last = done.stdout.splitlines()[-1]
    assert last.strip() == f"{ip.name} on icarus: {NETWORK_TESTS} of {NETWORK_TESTS} tests passed"


@pytest.mark.long
@pytest.mark.parametrize("fields", [{}, PROGRAM])
def test_a_wrong_product_of_a_network_core_fails(kits, fields, tmp_path):
    """The bench expects a product with another value of A than the core gets."""
    ip, files = kits("networks", **fields)
    text = files["bench/design.json"].decode()
    broken = json.loads(text)
    broken["product"]["a"][0][0] ^= 1
    done = run(tmp_path, {**files, "bench/design.json": json.dumps(broken).encode()})
    assert done.returncode == 1
    for test in (r"test_weft.products\S*", "test_driver.driver_computes"):
        assert re.search(rf"{test} +FAIL", done.stdout + done.stderr)


@pytest.mark.long
def test_a_driver_that_loses_a_part_of_the_program_fails(kits, tmp_path):
    ip, files = kits("networks", **PROGRAM)
    name = "driver/mm.c"
    broken = files[name].replace(b"if (to != from)\n", b"if (to == from)\n", 1)
    assert broken != files[name]
    done = run(tmp_path, {**files, name: broken})
    assert done.returncode == 1
    assert re.search(r"test_driver.driver_computes +FAIL", done.stdout + done.stderr)


@pytest.mark.long
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
