"""The models of single nodes that onnx ships with their results: all are read, or refused by name.
"""

import re
import warnings
import zlib

import numpy as np
import pytest
from onnx_models import require

import weft
from weft.config import Config
from weft.host.emulated import GoldenTransport
from weft.models.errors import ModelError

CONFIG = Config(rows=4, cols=4, depth=4, requantize="onnx")
# Results that differ from those of onnx in onnxruntime, too.
DIFFERENT = re.compile(
    r"test_(attention_4d_(causal_fp16|with_past_and_present_qk_matmul_bias_[34]d_mask_causal)"
    r"|resize_downsample_scales_(cubic|linear)_align_corners|training_dropout(_default)?(_mask)?"
    r"|dft.*)$"
)
SHARE = 0.6  # of the models that have an input and know their shapes: these must run


def arrays(values):
    """The tensors of a test; None if one is something else."""
    import onnx

    values = [
        onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
        for value in values
    ]
    return values if all(isinstance(value, np.ndarray) for value in values) else None


def with_constants(model, inputs):
    """The model with all inputs as constants but the first one, whose name and shape are known."""
    import onnx

    copy = onnx.ModelProto.FromString(model.SerializeToString())
    copy.ir_version = max(copy.ir_version, 8)
    names = [value.name for value in copy.graph.input]
    for name, value in list(zip(names, inputs, strict=False))[1:]:
        copy.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    del copy.graph.input[1:]
    return copy.SerializeToString(), {names[0]: inputs[0].shape}


def outcome(case):
    """``ran``, ``refused``, or what is wrong."""
    inputs, outputs = map(arrays, case.data_sets[0])
    if not inputs or outputs is None:
        return "skipped"
    data, shapes = with_constants(case.model, inputs)
    try:
        program = weft.load(data, "node", shapes=shapes).compile(CONFIG)
        with program.open(GoldenTransport(CONFIG)) as session:
            found = session([inputs[0]])
    except ModelError as error:
        return "refused" if str(error).startswith(("node: ", "node.onnx: ")) else str(error)
    found = found if isinstance(found, list) else [found]
    for y, expected in zip(found, outputs, strict=True):
        if (y.dtype, y.shape) != (expected.dtype, expected.shape):
            return f"{y.dtype} {y.shape} instead of {expected.dtype} {expected.shape}"
        exact = y.dtype.kind not in "fc"
        tolerance = {} if exact else {"rtol": max(case.rtol, 1e-3), "atol": max(case.atol, 1e-6)}
        if exact and not np.array_equal(y, expected):
            return "other numbers"
        if not exact and not np.allclose(y, expected, **tolerance, equal_nan=True):
            return "other numbers"
    return "ran"


def is_used(case):
    """All but the different ones; of the expanded functions, a tenth."""
    if case.name.endswith("_expanded") and zlib.crc32(case.name.encode()) % 10:
        return False
    return not DIFFERENT.match(case.name)


@pytest.mark.slow
def test_all_nodes_run_or_are_refused_by_name():
    require("onnx", "onnxruntime")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the makers of the tests
        from onnx.backend.test.loader import load_model_tests

        cases = load_model_tests(kind="node")
        found = {case.name: outcome(case) for case in cases if is_used(case)}
    known = ("ran", "refused", "skipped")
    wrong = {name: text for name, text in found.items() if text not in known}
    assert not wrong
    counts = [list(found.values()).count(text) for text in ("ran", "refused")]
    assert counts[0] > SHARE * sum(counts)
