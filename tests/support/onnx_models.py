"""Small ONNX models with fixed random weights, and their results in onnxruntime on one core."""

import importlib.util

import numpy as np
import pytest
from graph_runner import run_graph

from weft.models.ir import Gemm
from weft.models.onnx import load
from weft.models.onnx.fallback import with_exact_products

__all__ = ["Builder", "attention", "cnn", "equal_to_runtime", "require", "run_runtime"]


def require(*names):
    """Skip the test if a package is missing."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


class Builder:
    """Builds a model node by node; constants are drawn from a seed."""

    def __init__(self, seed=1, opset=17, domains=("com.microsoft",), functions=()):
        self.rng = np.random.default_rng(seed)
        self.opset, self.domains, self.functions = opset, domains, functions
        self.nodes, self.constants, self.inputs = [], [], []

    def input(self, name, shape, dtype=np.float32):
        """An input; dimensions may be numbers or names."""
        from onnx import helper

        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, value, name=None):
        """A constant; its name."""
        from onnx import numpy_helper

        name = name or f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weights(self, *shape, scale=None):
        """A constant of normal float32 numbers, small enough for the sums of a layer."""
        scale = scale or 1 / np.sqrt(np.prod(shape[1:]))
        return self.constant(self.rng.normal(0, scale, shape).astype(np.float32))

    def node(self, kind, *inputs, outputs=1, domain="", **attributes):
        """A node; arrays among its inputs become constants. The name of its output, or names."""
        from onnx import helper

        names = [n if isinstance(n, str) else self.constant(n) for n in inputs]
        results = [f"{kind}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(
            kind, names, results, name=f"{kind}{len(self.nodes)}", domain=domain, **attributes
        ))
        return results[0] if outputs == 1 else results

    def model(self, *outputs, dtype=np.float32):
        """The model with these outputs, all of one type."""
        from onnx import helper

        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        results = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "graph", self.inputs, results, self.constants)
        imports = [helper.make_opsetid("", self.opset)]
        imports += [helper.make_opsetid(domain, 1) for domain in self.domains]
        return helper.make_model(
            graph, opset_imports=imports, ir_version=8, functions=self.functions
        )

    def bytes(self, *outputs, dtype=np.float32):
        """The file of the model."""
        return self.model(*outputs, dtype=dtype).SerializeToString()


def cnn():
    """A convolution, a depthwise, a grouped and a transposed one, pools, and a matrix product."""
    b = Builder(seed=3)
    x = b.input("x", ["n", 3, 10, 10])
    y = b.node("Relu", b.node("Conv", x, b.weights(8, 3, 3, 3), b.weights(8), pads=[1, 1, 1, 1]))
    z = b.node("Conv", y, b.weights(8, 1, 3, 3), b.weights(8), pads=[1, 1, 1, 1], group=8)
    z = b.node("Clip", z, np.float32(0), np.float32(0.4))
    z = b.node("Conv", z, b.weights(8, 4, 1, 1), b.weights(8), group=2)
    y = b.node("Sigmoid", b.node("Add", y, z))
    y = b.node("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y = b.node("ConvTranspose", y, b.weights(8, 4, 3, 3), b.weights(4), strides=[2, 2])
    y = b.node("Flatten", b.node("GlobalAveragePool", y))
    return b, b.node("Gemm", y, b.weights(10, 4), b.weights(10), transB=1)


def attention():
    """Two products of activations with a softmax between them, and an MLP."""
    b = Builder(seed=4)
    x = b.input("x", [1, 6, 16])
    q, k, v = (b.node("MatMul", x, b.weights(16, 16)) for _ in range(3))
    q, k, v = (b.node("Reshape", t, np.int64([1, 6, 2, 8])) for t in (q, k, v))
    q, v = (b.node("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
    s = b.node("MatMul", q, b.node("Transpose", k, perm=[0, 2, 3, 1]))
    s = b.node("Softmax", b.node("Mul", s, np.float32(8**-0.5)), axis=-1)
    y = b.node("Transpose", b.node("MatMul", s, v), perm=[0, 2, 1, 3])
    y = b.node("Add", x, b.node("Reshape", y, np.int64([1, 6, 16])))
    z = b.node("Add", b.node("MatMul", y, b.weights(16, 24)), b.weights(24))
    return b, b.node("MatMul", b.node("Tanh", z), b.weights(24, 16))


def run_runtime(data, inputs, optimized=False):
    """The outputs of a model in onnxruntime, for inputs in order; by default node by node.

    Products of integers are exact on each processor (`with_exact_products`).
    """
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    )
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    data = with_exact_products(onnx.ModelProto.FromString(data)).SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def equal_to_runtime(b, y, inputs, dtype=np.float32, kinds=None, tolerance=0.0):
    """The graph of a `Builder`, after its output ``y`` was compared with onnxruntime's.

    Parameters
    ----------
    b : Builder
    y : str
    inputs : sequence of array
    dtype : numpy type
        Type of the output.
    kinds : list of str, optional
        The operator of each product and the kernel of each other node, compared with the graph's.
    tolerance : float
        Largest absolute difference; 0 for the same bytes.
    """
    require("onnx", "onnxruntime")
    data = b.bytes(y, dtype=dtype)
    graph = load(data, "net.onnx")
    found = [n.operator if isinstance(n, Gemm) else n.kernel for n in graph.nodes]
    assert kinds is None or found == kinds
    ours = run_graph(graph, inputs, mode="onnx")[graph.outputs[0]]
    [expected] = run_runtime(data, inputs)
    assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
    if tolerance:
        np.testing.assert_allclose(ours, expected, atol=tolerance)
    else:
        np.testing.assert_array_equal(ours, expected)
    return graph
