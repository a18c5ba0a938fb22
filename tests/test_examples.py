"""The examples run, and so does every Python block of the pages that teach it."""

import importlib.util
import json
import re
import runpy
import sys
from pathlib import Path

import amaranth_soc_stand_in
import numpy as np
import pytest
from tooling import load

from weft.demo import digits_images

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = {path.name: path for path in sorted((ROOT / "examples").glob("*.py"))}
NOTEBOOKS = {path.name: path for path in sorted((ROOT / "examples").glob("*.ipynb"))}
# `weft build --board` reads the board (tests/cli/test_build.py); amaranth-soc is not on PyPI.
NOT_RUN = {"my_board.py", "amaranth_soc.py", "from_pytorch.py", "train_torch.py",
           "onnxruntime_operator.py"}
# A simulation, and training; the notebook does what the script does.
MARKS = {
    "batch_on_board.py": pytest.mark.slow, "train_jax.py": pytest.mark.slow,
    "train_in_jax.ipynb": pytest.mark.long,
}
BLOCKS = {
    f"{page}-{number}": block
    for page in ("quickstart", "python", "parallel", "ip", "networks", "language")
    for number, block in enumerate(re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"),
        re.M | re.S,
    ))
}


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=MARKS.get(name, ()))
    for name in SCRIPTS if name not in NOT_RUN
])
def test_example_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(SCRIPTS[name])])
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        assert end.code == 0
    assert capsys.readouterr().out


def example(path):
    """A module of an example."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_amaranth_soc_example(monkeypatch, capsys):
    amaranth_soc_stand_in.install(monkeypatch)
    assert example(ROOT / "examples" / "amaranth_soc.py").main() == 0
    assert capsys.readouterr().out == "a product over the bus of the SoC equals NumPy's\n"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the older exporter of PyTorch
def test_from_pytorch(capsys):
    pytest.importorskip("torch", reason="PyTorch is not installed: 5 GB from PyPI")
    y, wanted = example(ROOT / "examples" / "from_pytorch.py").main()
    assert y.shape == wanted.shape == (64, 10)
    assert np.abs(y - wanted).max() < 0.05 * np.abs(wanted).max()
    said = capsys.readouterr().out
    assert "equal to onnxruntime in mode onnx" in said and "top-1 agrees in " in said


def test_train_torch(monkeypatch, capsys):
    pytest.importorskip("torch", reason="PyTorch is not installed: 5 GB from PyPI")
    module = example(ROOT / "examples" / "train_torch.py")
    monkeypatch.setattr(module, "STEPS", 20)
    report, loss, correct = module.main()
    assert loss < 1.8 and correct > 0.4
    assert len(report.on_weft) == 8 and report.reasons() == []
    assert "8 of " in capsys.readouterr().out


def test_onnxruntime_operator(capsys):
    pytest.importorskip("onnxruntime_extensions", reason="onnxruntime-extensions is not installed")
    y, wanted = example(ROOT / "examples" / "onnxruntime_operator.py").main()
    assert y.shape == wanted.shape == (8, 10)
    assert 0 < np.abs(y - wanted).max() < 0.01 * np.abs(wanted).max()
    assert "8 samples" in capsys.readouterr().out


def test_train_jax(monkeypatch, capsys):
    """A few steps, and the way to the golden model of the chip."""
    module = example(ROOT / "examples" / "train_jax.py")
    monkeypatch.setattr(module, "STEPS", 12)
    params, program, scores = module.main()
    images, _ = module.digits()
    float32 = np.asarray(module.network(params, images[400:]))
    noise = np.square(scores - float32).mean() / np.square(float32).mean()
    assert 10 * np.log10(noise) < -20  # dB
    assert all(not step.macs for step in program.host)
    assert "8 of " in capsys.readouterr().out


def test_data_of_the_soc_example(monkeypatch):
    """`make interop` runs the SoC; the digits that it must find are compared with the labels."""
    monkeypatch.syspath_prepend(ROOT / "examples" / "soc")
    module = example(ROOT / "examples" / "soc" / "run.py")
    header, digits = module.network_header()
    labels = digits_images()[1][: module.IMAGES]
    assert (np.array(digits) == labels).sum() >= module.IMAGES - 1
    assert header.count("static const weft_column columns") == 3


def described(outputs):
    """The outputs of each cell without the bytes of pictures, which depend on fonts."""
    return [
        ["".join(out["data"]["text/plain"] if "data" in out else out["text"]) for out in cell]
        for cell in outputs
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=MARKS.get(name, ())) for name in NOTEBOOKS
])
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
    # The second block of language models builds the largest model of all tests.
    pytest.param(name, marks=[pytest.mark.slow] if name.startswith(("ip", "language-1")) else [])
    for name in BLOCKS
])
def test_block_runs(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(compile(BLOCKS[name], name, "exec"), {})
