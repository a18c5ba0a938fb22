"""Operators become nodes: products with the neighbours that fuse, and the rest for the host."""

import dataclasses
import math
from collections import Counter, defaultdict

import numpy as np

from weft.models.errors import ModelError
from weft.models.ir import Graph, Host, Quantization, Tensor
from weft.models.onnx import einsum, floats, integers, quantized_moves, recurrent, tables
from weft.models.onnx.fallback import check_runs, cut_out, lacks_opset
from weft.models.onnx.host import lower
from weft.models.onnx.reading import read
from weft.models.onnx.source import Source, dequantized

__all__ = ["Importer", "load", "macs_of"]

CONVERSIONS = ("QuantizeLinear", "DequantizeLinear")


def load(data: bytes, name: str, *, shapes=None) -> Graph:
    """The network of an ``.onnx`` file.

    Products (``Conv``, ``ConvTranspose``, ``MatMul``, ``Gemm``, and ``Einsum`` of two operands of
    float32) become `weft.models.ir.Gemm`:

    - products of ``QLinearConv``, ``QLinearMatMul``, ``QGemm``, ``ConvInteger``,
      ``MatMulInteger``, ``MatMulIntegerToFloat`` and ``DynamicQuantizeMatMul``;
    - products between ``DequantizeLinear`` and ``QuantizeLinear``, with a ``Relu`` or ``Clip``
      after them. onnxruntime fuses some of these and computes the others in float32; here all of
      them are integer products. `Graph.notes` says how many;
    - products of float32.

    A recurrent layer (``LSTM``, ``GRU``, ``RNN``) becomes a Gemm of its inputs and a
    `weft.models.ir.Recurrence`. Everything else is a `weft.models.ir.Host`.

    Parameters
    ----------
    data : bytes
        Content of the file.
    name : str
        Name of the file, such as ``net.onnx``.
    shapes : mapping of str to tuple of int, optional
        Shapes of inputs with dynamic dimensions, ``{"input": (1, 3, 224, 224)}``. Without it a
        dynamic first dimension, the batch, is 1, and another one is an error.

    Raises
    ------
    ModelError
        If the file is damaged or invalid, needs other files, or has sizes that are not known
        before it runs. The message names the file, and the node or the tensor.
    """
    model, notes = read(data, name, shapes)
    source = Source.of(model, name, len(data))
    graph = Importer(source, [*notes, *source.notes]).graph()
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if lacks_opset(max(versions)):
        graph = dataclasses.replace(graph, unlike={"onnx": f"it has no operator set {versions[0]}"})
    return graph


class Importer:
    """Lowers the operators of a source in order.

    Attributes
    ----------
    source : Source
    fused : Counter
        Products by how they were fused; for the notes.
    """

    def __init__(self, source, notes=()):
        self.source = source
        self.fused = Counter()
        self._notes = list(notes)
        self._facts = defaultdict(list)  # names of operators, by what is said about them
        self._tensors, self._nodes = [], []
        self._numbers = {}  # of tensors, by name
        self._quantizations = {}
        self._taken = set()  # operators that a node before them stands for

    def graph(self) -> Graph:
        """The graph of all operators."""
        source = self.source
        inputs = tuple(self.tensor(name) for name in source.inputs)
        for operator in source.operators:
            if operator.index not in self._taken and not self._waits(operator):
                self._lower(operator)
        outputs = tuple(self.value(name) for name in source.outputs)
        return Graph(
            name=source.name, source="onnx", tensors=self._quantized_tensors(),
            nodes=tuple(self._nodes), inputs=inputs, outputs=outputs,
            operators=tuple(source.kinds),
            notes=(*self._notes, *self._operator_notes(), *self._fusion_notes()),
        )

    # Tensors

    def tensor(self, name) -> int:
        """Number of the tensor with a name."""
        if name not in self._numbers:
            dtype, shape = self.source.types[name]
            self._numbers[name] = self.new_tensor(
                name, shape, dtype, self.source.constants.get(name)
            )
        return self._numbers[name]

    def new_tensor(self, name, shape, dtype, data=None) -> int:
        """Number of a new tensor."""
        self._tensors.append(Tensor(name, tuple(shape), np.dtype(dtype), None, data))
        return len(self._tensors) - 1

    def value(self, name) -> int:
        """Number of the tensor with a name; a DequantizeLinear before it that waits is emitted."""
        if name in self._numbers:
            return self._numbers[name]
        constant = self.float_constant(name)
        if constant is not None:
            self._numbers[name] = self.new_tensor(name, constant.shape, constant.dtype, constant)
        elif name in self.source.producer and self._waits(self.source.producer[name]):
            self.host(self.source.producer[name])
        return self.tensor(name)

    def float_constant(self, name):
        """Value of a constant, dequantized if a DequantizeLinear computes it; or None."""
        if name in self.source.constants:
            return self.source.constants[name]
        operator = self.source.producer.get(name)
        if operator is None or not self._waits(operator):
            return None
        if operator.kind == "Transpose":
            inner = self.float_constant(operator.inputs[0])
            return None if inner is None else inner.transpose(operator.attributes.get("perm"))
        values = [self.source.constant(n) if n else None for n in operator.inputs]
        if values[0] is None or values[1] is None or operator.attributes.get("block_size"):
            return None
        zero = values[2] if len(values) > 2 and values[2] is not None else np.zeros(1, np.int64)
        return dequantized(values[0], values[1], zero, operator.attributes.get("axis", 1))

    def quantize(self, name, scale, zero, axis=0):
        """Record the scale and zero point of the tensor with a name."""
        self._quantizations[name] = Quantization(
            np.ravel(np.float32(scale)), np.ravel(np.int64(zero)), axis
        )

    # Nodes

    def emit(self, node):
        """Append a node.

        A QuantizeLinear or DequantizeLinear around another operator is a part of it: the operator
        alone has a place in the file.
        """
        kinds = self.source.kinds
        position = tuple(place for place in node.position if kinds[place] not in CONVERSIONS)
        self._nodes.append(dataclasses.replace(node, position=position or node.position))

    def note(self, name, text):
        """Add a fact about an operator that a user should know; equal facts are told once."""
        self._facts[text].append(name)

    def take(self, places):
        """Mark operators that a node stands for."""
        self._taken.update(places)

    def host(self, operator, why="no product, and no kernel: onnxruntime computes it"):
        """Append the node of an operator that the host computes: a kernel, or the runtime.

        ``why`` is the reason if it is the runtime.
        """
        source = self.source
        lowered, macs = lower(operator, source), 0
        outputs = [name for name in operator.outputs if name]
        if lowered is None:
            model, names = cut_out(operator, source.types, source.constants, source.opsets)
            try:
                check_runs(model, operator, why, source.types, source.file)
            except ModelError:
                parts = source.body(operator)
                for part in parts:
                    self._lower(part)
                if parts:
                    return
                raise
            kernel, attributes, reason = "onnx.model", {"model": model}, why
            macs = macs_of(operator, source.types)
        else:
            kernel, names, attributes, reason = lowered
        self.emit(Host(
            operator=operator.title, name=operator.name, position=(operator.index,),
            inputs=tuple(self.value(name) if name else -1 for name in names),
            outputs=tuple(self.tensor(name) for name in outputs),
            kernel=kernel, attributes=attributes, reason=reason, macs=macs,
        ))

    def add_host(self, operator, kernel, inputs, output, reason, **attributes):
        """Append a further node of an operator, between given tensors."""
        self.emit(Host(
            operator=operator.title, name=operator.name, position=(operator.index,),
            inputs=tuple(inputs), outputs=(output,), kernel=kernel, attributes=attributes,
            reason=reason,
        ))

    def reshaped(self, operator, number, shape) -> int:
        """A tensor in another shape."""
        tensor = self._tensors[number]
        if tensor.shape == tuple(shape):
            return number
        output = self.new_tensor(tensor.name, shape, tensor.dtype)
        self.add_host(operator, "reshape", [number], output, "moves no data", shape=tuple(shape))
        return output

    def _lower(self, operator):
        try:
            for kind in (integers, quantized_moves, tables, floats, einsum, recurrent):
                if kind.lower(self, operator):
                    return
            self.host(operator)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, ModelError):
                raise
            # The checker and the inference do not see everything: a shape may have two dimensions.
            raise ModelError(
                f"{self.source.file}: node {operator.name} ({operator.kind}) has attributes or "
                f"constants that do not fit: {error}"
            ) from error

    def _waits(self, operator):
        """Whether an operator is emitted only when something reads its result.

        So are DequantizeLinear, and a Transpose of a constant that it computes.
        """
        if operator.kind == "Transpose" and operator.domain in ("", "ai.onnx"):
            inner = self.source.producer.get(operator.inputs[0])
            waits = inner is not None and self._waits(inner)
            return waits and self.float_constant(operator.inputs[0]) is not None
        return operator.kind == "DequantizeLinear"

    def _quantized_tensors(self):
        """All tensors, with the scales that the operators gave them."""
        source = self.source
        for operator in source.operators:
            if operator.kind in CONVERSIONS:
                name = (operator.outputs if operator.kind[0] == "Q" else operator.inputs)[0]
                values = [source.constant(n) if n else None for n in operator.inputs[1:3]]
                if values[0] is not None and not operator.attributes.get("block_size"):
                    zero = 0 if len(values) < 2 or values[1] is None else values[1]
                    axis = operator.attributes.get("axis", 1) if values[0].size > 1 else 0
                    self.quantize(name, values[0], zero, axis)
        tensors = list(self._tensors)
        for name, quantization in self._quantizations.items():
            if name in self._numbers:
                t = tensors[self._numbers[name]]
                tensors[self._numbers[name]] = Tensor(
                    t.name, t.shape, t.dtype, quantization, t.data
                )
        return tuple(tensors)

    def _operator_notes(self):
        for text, names in self._facts.items():
            others = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield f"{names[0]}{others}: {text}"

    def _fusion_notes(self):
        if self.fused["result"]:
            yield (
                f"{self.fused['result']} products between DequantizeLinear and QuantizeLinear are "
                "integer products here; onnxruntime fuses some of them and computes the others in "
                "float32"
            )
        if self.fused["sums"]:
            yield (
                f"{self.fused['sums']} products of quantized operands have float32 results; here "
                "their sums are integers, and the host scales them"
            )
        if self.fused["bias"]:
            yield f"{self.fused['bias']} float biases of quantized products are rounded to int32"
        if self.fused["table"]:
            yield (
                f"{self.fused['table']} functions between DequantizeLinear and QuantizeLinear are "
                "tables of 256 results"
            )


def macs_of(operator, types) -> int:
    """Return the MAC of a node in one inference; 0 if it has no product.

    ``types`` has (dtype, shape) by the names of tensors.
    """
    shapes = [types[name][1] if name else () for name in operator.inputs]
    y = next((types[name][1] for name in operator.outputs if name), ())
    try:
        if operator.kind in _PRODUCTS:
            return _PRODUCTS[operator.kind](operator, shapes, y)
    except IndexError:  # of a node that onnxruntime refuses
        pass
    return 0


def _weights(place):
    """A convolution whose weights are input ``place``."""
    return lambda operator, shapes, y: math.prod(y) * math.prod(shapes[place][1:])


def _transposed(operator, shapes, y):
    return math.prod(shapes[0]) * math.prod(shapes[1][1:])


def _matmul(operator, shapes, y):
    return math.prod(y) * shapes[0][-1]


def _gemm(operator, shapes, y):
    return math.prod(y) * shapes[0][0 if operator.attributes.get("transA", 0) else 1]


def _recurrent(operator, shapes, y):
    steps = math.prod(shapes[0][:2])  # of all sequences
    return steps * (math.prod(shapes[1]) + math.prod(shapes[2]))


def _attention(operator, shapes, y):
    """Of ONNX with q, k and v; of onnxruntime with the weights that make them of x."""
    past = shapes[4][-2] if len(shapes) > 4 and shapes[4] else 0
    if operator.domain != "com.microsoft":
        return (math.prod(shapes[0]) + math.prod(y)) * (shapes[1][-2] + past)
    batch, rows, _ = shapes[0]
    of_q = (shapes[1][1] - y[-1]) // 2
    return batch * rows * (math.prod(shapes[1]) + (rows + past) * (of_q + y[-1]))


def _quantized_attention(operator, shapes, y):
    """As Attention of onnxruntime, with scales and zero points before the past."""
    return _attention(operator, [*shapes[:4], *shapes[8:9]], y)


def _multi_head_attention(operator, shapes, y):
    """Of q, k and v. They may be in one tensor of 5 axes; k and v in one, or by heads, of 4."""
    query, key, *_ = [*shapes, ()]
    keys = key[2 if len(key) == 4 else 1] if key else query[1]
    past = shapes[6][-2] if len(shapes) > 6 and shapes[6] else 0
    of_q = math.prod(query[2:]) // (3 if len(query) == 5 else 1)
    return query[0] * query[1] * (keys + past) * (of_q + y[-1])


def _grouped_attention(operator, shapes, y):
    """Of q, whose heads share those of k and v; one tensor may have all three.

    A head of v is as large as one of q and k. Each row reads all of the past, and all rows.
    """
    past = shapes[3][-2] if len(shapes) > 3 and shapes[3] else 0
    batch, rows, *_ = shapes[0]
    return batch * rows * (rows + past) * 2 * y[-1]


_PRODUCTS = {
    "Attention": _attention,
    "Conv": _weights(1), "ConvInteger": _weights(1), "ConvTranspose": _transposed,
    "DynamicQuantizeMatMul": _matmul, "FusedConv": _weights(1), "FusedGemm": _gemm,
    "FusedMatMul": _matmul, "GRU": _recurrent, "Gemm": _gemm,
    "GroupQueryAttention": _grouped_attention, "LSTM": _recurrent,
    "MatMul": _matmul, "MatMulInteger": _matmul, "MatMulIntegerToFloat": _matmul,
    "MultiHeadAttention": _multi_head_attention, "QAttention": _quantized_attention,
    "QGemm": _gemm, "QLinearConv": _weights(3), "QLinearMatMul": _matmul, "RNN": _recurrent,
}
