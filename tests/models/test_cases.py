"""Small files of kinds that people have, against answers of the runtimes that were recorded.

The folder WEFT_CASES has the files, each with a file ``.npz`` beside it: inputs ``x0``, ``x1`` ...
with the calls along the first axis, and the answers ``tflm`` (TFLite Micro), ``litert``, ``ort``
(onnxruntime) and ``ort_plain`` (without optimizations).
"""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import weft
from weft.config import Config
from weft.host.emulated import GoldenTransport, ListTransport, product_config
from weft.models.errors import UnfitError
from weft.models.network_core.runners import GoldenRunner
from weft.models.oracles import compare
from weft.models.target import target_of

MODES = {"tflm": "tflite", "litert": "single", "ort": "onnx", "ort_plain": "onnx"}


@pytest.fixture(scope="module")
def folder():
    if "WEFT_CASES" not in os.environ:
        pytest.skip("WEFT_CASES must name a folder with small files and recorded answers")
    return Path(os.environ["WEFT_CASES"])


def answers(session, inputs):
    """The first output of each call."""
    found = []
    for call in range(len(inputs[0])):
        y = session([x[call] for x in inputs])
        found.append(y[0] if isinstance(y, list) else y)
    return found


def opened(network, mode, kind):
    """A session on the golden model of a core, and its program."""
    if kind == "product core":
        program = network.compile(Config(requantize=mode))
        return program, program.open(GoldenTransport(program.target.array))
    purpose = "networks-onnx" if mode == "onnx" else "networks"
    config = target_of("ulx3s-85f", purpose).config
    try:
        program = network.compile(config)
        return program, program.open("golden")
    except UnfitError:
        program = network.compile(product_config(config))
        return program, program.open(ListTransport(GoldenRunner(config)))


@pytest.mark.parametrize("kind", ["product core", "network core"])
def test_all_cases(folder, kind):
    seen = 0
    for path in sorted(folder.glob("*.*")):
        if path.suffix not in (".tflite", ".onnx"):
            continue
        with np.load(path.with_suffix(".npz")) as file:
            recorded = {name: file[name] for name in file.files}
        inputs = [recorded[f"x{n}"] for n in range(sum(name[0] == "x" for name in recorded))]
        network = weft.load(path)
        for mode in {MODES[name] for name in recorded if name in MODES}:
            if kind == "network core" and mode == "single":
                continue
            program, session = opened(network, mode, kind)
            with session:
                found = np.stack([np.asarray(y) for y in answers(session, inputs)])
            verdicts = {
                name: [difference.is_allowed for difference in compare(
                    _first_output(program), [found.reshape(recorded[name].shape)], [recorded[name]]
                )][0]
                for name in recorded if MODES.get(name) == mode
            }
            assert any(verdicts.values()), (path.name, mode, kind, program.exactness.claim)
            seen += 1
    assert seen >= (14 if kind == "product core" else 4)


def _first_output(program):
    """The program as `compare` sees it, with its first output alone."""
    exactness = program.exactness
    return SimpleNamespace(
        tensors=program.tensors, outputs=program.outputs[:1],
        exactness=type(exactness)(
            exactness.claim, exactness.absolute[:1], exactness.relative[:1]
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["product core", "network core"])
def test_all_networks(mlperf_tiny, kind):
    """The first recorded inference of each network of WEFT_NETWORKS has TFLite Micro's bytes."""
    seen = 0
    for path in sorted(mlperf_tiny.glob("*.tflite")):
        with np.load(path.with_suffix(".npz"), allow_pickle=False) as file:
            if "model_out_tflm" not in file.files:
                continue
            x, wanted = file["model_in"], file["model_out_tflm"]
        _, session = opened(weft.load(path), "tflite", kind)
        with session:
            for inputs, outputs in zip(x[:1], wanted[:1], strict=True):
                shape = session.program.tensors[session.program.inputs[0]].shape
                y = session(inputs.reshape(shape))
                assert np.array_equal(np.ravel(y), np.ravel(outputs)), (path.name, kind)
        seen += 1
    assert seen >= 3
