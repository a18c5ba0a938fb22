"""The examples of each framework: written where it is installed, and read by Weft."""

import pytest
from tooling import load

examples = load("export_examples")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the frameworks
@pytest.mark.parametrize("framework", examples.EXPORTERS)
def test_exported_networks_are_read(tmp_path, framework):
    if absent := examples.missing(framework):
        pytest.skip(f"{', '.join(absent)} must be installed to export from {framework}")
    export, _ = examples.EXPORTERS[framework]
    path = export(tmp_path)
    if path.suffix == ".onnx":
        from weft.network.onnx import load as read
    else:
        from weft.network.tflite import load as read
    graph = read(path.read_bytes(), path.name)
    assert sum(hasattr(node, "weights") for node in graph.nodes) == 2


def test_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(examples.importlib.util, "find_spec", lambda name: None)
    assert examples.main([str(tmp_path)]) == 1
    text = capsys.readouterr().out
    assert "torch: skipped, as torch, onnxscript is not installed" in text
    assert "tensorflow: skipped, as tensorflow is not installed" in text
