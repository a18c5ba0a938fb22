"""The examples run, and so does every Python block of the pages that teach it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = {path.name: path for path in sorted((ROOT / "examples").glob("*.py"))}
NOT_RUN = {"my_board.py"}  # read by `weft build --board`, which tests/cli/test_build.py tries
COMPILE = {"batch_on_board.py"}  # a simulation model
BLOCKS = {
    f"{page}-{number}": block
    for page in ("quickstart", "python", "ip")
    for number, block in enumerate(re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"),
        re.M | re.S,
    ))
}


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] if name in COMPILE else [])
    for name in SCRIPTS if name not in NOT_RUN
])
def test_example_runs(name, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", SCRIPTS[name]], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_pages_have_blocks():
    assert len(BLOCKS) >= 5


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] if name.startswith("ip") else []) for name in BLOCKS
])
def test_block_runs(name):
    exec(compile(BLOCKS[name], name, "exec"), {})
