"""The examples of each framework: written where it is installed, and read by Weft."""

import numpy as np
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
        from weft.models.onnx import load as read
    else:
        from weft.models.tflite import load as read
    graph = read(path.read_bytes(), path.name)
    products = [node for node in graph.nodes if hasattr(node, "weights")]
    assert len(products) == 2
    if path.suffix == ".onnx":
        products = quantized_products(path, graph.tensors[graph.inputs[0]])
    assert [str(node.weights.dtype) for node in products] == ["int8", "int8"]
    assert None not in [node.requantization for node in products]


def quantized_products(path, x):
    """The products of an exported network, quantized with samples for its input."""
    from weft.models.onnx import load as read
    from weft.models.onnx.quantize import Feeds, prepare, quantize

    samples = np.random.default_rng(1).normal(size=(8, *x.shape[1:])).astype(np.float32)
    prepared = prepare(path.read_bytes(), path.name)
    data = quantize(prepared, path.name, Feeds({x.name: samples}, prepared, "samples"))
    return [node for node in read(data, path.name).nodes if hasattr(node, "weights")]


def test_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(examples.importlib.util, "find_spec", lambda name: None)
    assert examples.main([str(tmp_path)]) == 1
    text = capsys.readouterr().out
    assert "torch: skipped, as torch, onnxscript is not installed" in text
    assert "tensorflow: skipped, as tensorflow is not installed" in text
