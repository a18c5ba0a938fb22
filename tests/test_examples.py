"""The examples run, and so does every Python block of the pages that teach it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tooling import load

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = {path.name: path for path in sorted((ROOT / "examples").glob("*.py"))}
NOTEBOOKS = {path.name: path for path in sorted((ROOT / "examples").glob("*.ipynb"))}
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


def described(outputs):
    """The outputs of each cell without the bytes of pictures, which depend on fonts."""
    return [
        ["".join(out["data"]["text/plain"] if "data" in out else out["text"]) for out in cell]
        for cell in outputs
    ]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs_and_shows_its_outputs(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    tool = load("notebook")
    notebook = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))
    stored = [cell["outputs"] for cell in tool.code_cells(notebook)]
    assert described(tool.execute(notebook)) == described(stored), (
        f"the outputs of examples/{name} are stale; type: python tools/notebook.py examples/{name}"
    )
    assert sum("data" in out for outputs in stored for out in outputs) >= 4


def test_the_pages_have_blocks():
    assert len(BLOCKS) >= 5


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] if name.startswith("ip") else []) for name in BLOCKS
])
def test_block_runs(name):
    exec(compile(BLOCKS[name], name, "exec"), {})
