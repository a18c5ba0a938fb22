"""Weights of int4 in a quantized model: int8 values, each a code of 4 bits times a small scale."""

import numpy as np

from weft.golden.int4 import CODES, MAX_SCALE, nearest

__all__ = ["GROUP", "with_int4_weights"]

GROUP = 8  # channels of a tap that share a scale: a vector of a core with a depth of 8, or a part
_STEPS = CODES[1] * MAX_SCALE  # of a scale of the channel, in the largest weight


def with_int4_weights(model: bytes) -> tuple[bytes, int, int]:
    """Change the weights of a quantized model to the ones of int4 next to them.

    Weights of a ``Conv``, ``Gemm`` or ``MatMul`` have a scale for each output, and an integer
    factor of 1 to 15 for each 8 input channels of a tap. They stay int8: any runtime reads them.
    Others stay as they are: of depthwise layers, of two nodes, or with a zero point.

    Parameters
    ----------
    model : bytes
        In the form QDQ, from `weft.models.onnx.quantize.quantize`.

    Returns
    -------
    (bytes, int, int)
        The model, its weights of int4, and all weights of the three operators.
    """
    import onnx

    found = onnx.ModelProto.FromString(model)
    changed, every = _Weights(found.graph).change()
    return found.SerializeToString(), changed, every


class _Weights:
    """The weights of the nodes of a graph, which change in their place.

    Parameters
    ----------
    graph : onnx.GraphProto
    """

    def __init__(self, graph):
        self._graph = graph
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._made_by = {name: node for node in graph.node for name in node.output}
        names = [name for node in graph.node for name in node.input]
        names += [value.name for value in graph.output]
        self._replaced: set[str] = set()
        self._uses = {name: names.count(name) for name in set(names)}

    def change(self):
        """Change all weights; returns how many are of int4, and how many there are."""
        changed = every = 0
        for node in [*self._graph.node]:
            if node.op_type not in ("Conv", "Gemm", "MatMul") or len(node.input) < 2:
                continue
            source = self._dequantized(node.input[1])
            if source is None:
                continue
            weights = self._value(source.input[0])
            if weights.dtype != np.int8 or weights.ndim < 2:
                continue
            every += weights.size
            if self._change(node, source, weights):
                changed += weights.size
        self._drop_replaced()
        return changed, every

    def _drop_replaced(self):
        """Drop the constants that a node read before."""
        read = {name for node in self._graph.node for name in node.input}
        kept = [
            tensor for tensor in self._graph.initializer
            if tensor.name in read or tensor.name not in self._replaced
        ]
        kept = [type(tensor).FromString(tensor.SerializeToString()) for tensor in kept]
        del self._graph.initializer[:]
        self._graph.initializer.extend(kept)

    def _change(self, node, source, weights):
        """Change the weights of a node, and its bias; whether they can be of int4."""
        outputs, inputs = _axes(node, weights.ndim)
        scale, bias = self._value(source.input[1]).astype(np.float64), None
        if "".join(node.input[2:]):
            bias, operand = self._dequantized(node.input[2]), self._dequantizer(node.input[0])
            if bias is None or operand is None or self._uses[bias.output[0]] > 1:
                return False
            if operand.input[1] not in self._constants:
                return False
        alone = self._uses[source.output[0]] == self._uses[source.input[0]] == 1
        by_output = scale.size == 1 or _attribute(source, "axis", 1) % weights.ndim == outputs
        if not (alone and by_output) or weights.shape[inputs] == 1 or self._zeros(source).any():
            return False
        # The largest weight is 127 times the scale, and 105 times the new one.
        rows = np.moveaxis(weights, inputs, -1)
        changed = nearest(rows.reshape(-1, rows.shape[-1]) * (_STEPS / 127), GROUP)
        self._set(source, 0, np.moveaxis(changed.reshape(rows.shape), -1, inputs))
        self._set(source, 1, (scale * (127 / _STEPS)).astype(np.float32))
        if bias is not None:
            unit = self._value(operand.input[1]) * self._value(source.input[1])
            values = self._value(bias.input[0]) * self._value(bias.input[1]).astype(np.float64)
            self._set(bias, 0, np.rint(values / unit).astype(np.int32))
            self._set(bias, 1, unit)
        return True

    def _dequantizer(self, name):
        """The ``DequantizeLinear`` that makes a tensor, or None."""
        node = self._made_by.get(name)
        return node if node is not None and node.op_type == "DequantizeLinear" else None

    def _dequantized(self, name):
        """The same of a constant tensor, with a constant scale."""
        node = self._dequantizer(name)
        constant = node is not None and {*node.input[:2]} <= self._constants.keys()
        return node if constant else None

    def _zeros(self, node):
        """The zero points of a ``DequantizeLinear``."""
        return self._value(node.input[2]) if "".join(node.input[2:]) else np.zeros(1)

    def _value(self, name):
        """The value of a constant."""
        from onnx import numpy_helper

        return numpy_helper.to_array(self._constants[name])

    def _set(self, node, place, value):
        """Give a node a constant of its own: others may read the one that it had."""
        from onnx import numpy_helper

        name = f"{node.output[0]}_int4_{place}"
        self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        self._graph.initializer.append(self._constants[name])
        self._replaced.add(node.input[place])
        node.input[place] = name


def _attribute(node, name, default):
    """The integer of an attribute."""
    return next((given.i for given in node.attribute if given.name == name), default)


def _axes(node, dimensions):
    """The axes of the outputs and of the inputs in the weights of a node."""
    if node.op_type == "MatMul":
        return dimensions - 1, dimensions - 2
    is_row = node.op_type == "Conv" or _attribute(node, "transB", 0)
    return (0, 1) if is_row else (1, 0)
