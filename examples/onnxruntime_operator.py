"""A matrix product of an ONNX graph on a core: an operator of onnxruntime, made of an Accelerator.

    pip install onnxruntime-extensions
    python examples/onnxruntime_operator.py                the golden model, without hardware
    python examples/onnxruntime_operator.py /dev/ttyUSB1   a board with a bf16 core

onnxruntime runs the graph; it calls `WeftMatMul` for each matrix product.
"""

import sys

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnxruntime_extensions import PyCustomOpDef, get_library_path, onnx_op

from weft import Accelerator, Config
from weft.host import GoldenTransport

DOMAIN = "ai.onnx.contrib"  # of the operators of onnxruntime-extensions


def register(accelerator):
    """Let `WeftMatMul` compute on an accelerator; operands are rounded to bfloat16."""
    float32 = PyCustomOpDef.dt_float

    @onnx_op(op_type="WeftMatMul", inputs=[float32, float32], outputs=[float32])
    def product(a, b):
        # A product of more than two dimensions has one matrix for all rows of a.
        y = accelerator.matmul(a.reshape(-1, a.shape[-1]), b, cast=True)
        return y.reshape(*a.shape[:-1], b.shape[1])


def on_core(model: ModelProto) -> ModelProto:
    """The model with `WeftMatMul` in the place of MatMul by a constant matrix."""
    changed = ModelProto()
    changed.CopyFrom(model)
    matrices = {x.name for x in changed.graph.initializer if len(x.dims) == 2}
    for node in changed.graph.node:
        if node.op_type == "MatMul" and node.input[1] in matrices:
            node.op_type, node.domain = "WeftMatMul", DOMAIN
    changed.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return changed


def network(rng) -> ModelProto:
    """Two layers; your own model comes from `onnx.load`."""
    def tensor(name, *shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    weights = {"w1": rng.normal(0, 0.2, (64, 32)), "w2": rng.normal(0, 0.2, (32, 10))}
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w2"], ["y"]),
    ]
    constants = [numpy_helper.from_array(np.float32(w), name) for name, w in weights.items()]
    graph = helper.make_graph(
        nodes, "network", [tensor("x", "batch", 64)], [tensor("y", "batch", 10)], constants
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(model, x):
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, {"x": x})[0]


def main(port=None):
    rng = np.random.default_rng(1)
    model, x = network(rng), np.float32(rng.normal(size=(8, 64)))
    transport = port or GoldenTransport(Config(dtype="bf16", rows=8, cols=8))
    with Accelerator(transport) as accelerator:
        register(accelerator)
        y = run(on_core(model), x)
    wanted = run(model, x)
    error = np.abs(y - wanted).max() / np.abs(wanted).max()
    print(f"{len(x)} samples; largest difference to float32: {error:.2%} of the largest score")
    return y, wanted


if __name__ == "__main__":
    main(*sys.argv[1:])
