"""Products of float32 become `Gemm`, with the batch normalization, bias and ReLU after them."""

import numpy as np

from weft.models.ir import Gemm
from weft.models.onnx.einsum import form_of_operator
from weft.models.onnx.operands import limits_of
from weft.models.onnx.products import layout_of

__all__ = ["lower"]

FLOAT = np.dtype(np.float32)


def lower(importer, operator) -> bool:
    """Append the node of a float32 product; False if the operator is not such a product."""
    source = importer.source
    if operator.domain not in ("", "ai.onnx"):
        return False
    form, kind = form_of_operator(source, operator), operator.kind
    if form is not None and form.is_matmul:
        kind = "MatMul"
    if kind not in ("Conv", "ConvTranspose", "MatMul", "Gemm"):
        return False
    if any(source.types[name][0] != FLOAT for name in operator.reads):
        return False
    attributes, names = operator.attributes, operator.inputs
    w, y_shape = importer.float_constant(names[1]), source.types[operator.outputs[0]][1]
    layout = layout_of(
        kind, attributes, source.types[names[0]][1], source.types[names[1]][1], w, y_shape
    )
    if layout is None:
        return False
    alpha = np.float32(attributes.get("alpha", 1.0))
    if alpha != 1 and layout.weights is None:
        return False
    weights = None if layout.weights is None else layout.weights * alpha
    bias = None
    if len(names) > 2 and names[2]:
        bias = _row(importer.float_constant(names[2]), layout.columns)
        if bias is None:
            return False
        bias = bias * np.float32(attributes.get("beta", 1.0))
    product = _Followed(weights, bias, layout.columns, layout.arguments.get("window") is not None)
    name, activation, places = product.follow(importer, operator)
    inputs = [importer.reshaped(operator, importer.value(names[0]), layout.x_shape)]
    b = None
    if weights is None:
        b = importer.value(names[1])
        inputs.append(b)
    final = importer.tensor(name)
    y = final if layout.y_shape == y_shape else importer.new_tensor(name, layout.y_shape, FLOAT)
    importer.take(places)
    importer.emit(Gemm(
        operator=operator.title, name=operator.name,
        position=tuple(sorted({operator.index, *places})), inputs=tuple(inputs), outputs=(y,),
        x=inputs[0], weights=product.weights, b=b, bias=product.bias, activation=activation,
        **layout.arguments,
    ))
    if y != final:
        importer.add_host(operator, "reshape", [y], final, "moves no data", shape=tuple(y_shape))
    return True


class _Followed:
    """Weights and bias of a product, changed by the operators after it that fuse."""

    def __init__(self, weights, bias, columns, is_map):
        self.weights, self.bias = weights, bias
        self._columns, self._is_map = columns, is_map

    def follow(self, importer, operator):
        """Name of the last tensor, activation, and places of the operators that were fused."""
        source, places, name = importer.source, [], operator.outputs[0]
        while True:
            after = source.only_user(name)
            if after is None or after.domain not in ("", "ai.onnx"):
                return name, "none", tuple(places)
            activation = _activation(source, after)
            fused = activation or self._normalize(importer, after) or (
                self._shift_or_scale(importer, after, name)
            )
            if not fused:
                return name, "none", tuple(places)
            places.append(after.index)
            name = after.outputs[0]
            if activation:
                return name, activation, tuple(places)

    def _normalize(self, importer, after):
        """Fold a batch normalization into the weights and the bias."""
        if after.kind != "BatchNormalization" or self.weights is None or not self._is_map:
            return False
        if after.attributes.get("training_mode", 0) or len([n for n in after.outputs if n]) != 1:
            return False
        values = [importer.float_constant(name) for name in after.inputs[1:5]]
        if any(value is None or value.shape != (self._columns,) for value in values):
            return False
        gamma, beta, mean, variance = (value.astype(np.float64) for value in values)
        with np.errstate(all="ignore"):
            factor = gamma / np.sqrt(variance + after.attributes.get("epsilon", 1e-5))
        if not np.all(np.isfinite(factor)):
            return False
        bias = 0.0 if self.bias is None else self.bias
        self.bias = ((bias - mean) * factor + beta).astype(np.float32)
        groups, _, columns = self.weights.shape
        self.weights = (self.weights * factor.reshape(groups, 1, columns)).astype(np.float32)
        return True

    def _shift_or_scale(self, importer, after, name):
        """Add a constant row to the bias, or multiply the columns by one."""
        if after.kind not in ("Add", "Mul") or (after.kind == "Mul" and self.weights is None):
            return False
        other = next((n for n in after.inputs if n != name), None)
        value = None if other is None else importer.float_constant(other)
        if value is None or importer.source.types[after.outputs[0]] != importer.source.types[name]:
            return False
        if self._is_map:
            spatial = len(importer.source.types[name][1]) - 2
            if value.size > 1 and (
                value.ndim <= spatial or any(size != 1 for size in value.shape[-spatial:])
            ):
                return False
            value = value.reshape(value.shape[: max(value.ndim - spatial, 0)])
        row = _row(value, self._columns)
        if row is None:
            return False
        if after.kind == "Mul":
            groups, _, columns = self.weights.shape
            self.weights = self.weights * row.reshape(groups, 1, columns)
            self.bias = None if self.bias is None else self.bias * row
        else:
            self.bias = row if self.bias is None else self.bias + row
        return True


def _row(value, columns):
    """A constant as one number for each column; None if it is something else."""
    if value is None or value.size not in (1, columns):
        return None
    if value.size != 1 and value.shape[-1] != columns:
        return None
    return np.broadcast_to(value.ravel(), columns).astype(np.float32)


def _activation(source, after):
    """``relu`` or ``relu6``, or None."""
    return {(0, np.inf): "relu", (0, 6): "relu6"}.get(limits_of(source, after))
