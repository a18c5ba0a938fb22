"""Functions of one 8-bit number, between DequantizeLinear and QuantizeLinear, become tables."""

import numpy as np

from weft.models.ir import Host
from weft.models.kernels import run
from weft.models.onnx.host import lower as lower_host
from weft.models.onnx.operands import from_dequantize, result_of
from weft.models.onnx.source import dequantized
from weft.quantize import activation_table, leaky_relu, sigmoid

__all__ = ["lower"]

UNARY = {
    "Abs", "Add", "Ceil", "Clip", "Div", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid",
    "HardSwish", "LeakyRelu", "Log", "Mul", "Neg", "Pow", "Relu", "Round", "Selu", "Sigmoid",
    "Softplus", "Softsign", "Sqrt", "Sub", "Tanh",
}
# IEEE 754 fixes their results in float32.
EXACT = {"Abs", "Add", "Ceil", "Clip", "Div", "Floor", "Mul", "Neg", "Relu", "Round", "Sqrt", "Sub"}


def lower(importer, operator) -> bool:
    """Append the table of an operator and its followers up to a QuantizeLinear, if they fit."""
    if operator.domain == "com.microsoft":
        return _qlinear(importer, operator)
    source = importer.source
    x = from_dequantize(source, operator.inputs[0]) if operator.inputs else None
    chain, name = [], operator.inputs[0] if operator.inputs else ""
    if x is None:  # a constant may be the first input of an Add or a Mul
        if operator.kind not in ("Add", "Mul") or len(operator.inputs) != 2:
            return False
        name = operator.inputs[1]
        x = from_dequantize(source, name)
    if x is None or x.data is not None or x.scale.size != 1 or x.zero.size != 1:
        return False
    current = operator
    while current.kind != "QuantizeLinear":
        if not _is_unary(source, current, name):
            return False
        chain.append((current, name))
        name = current.outputs[0]
        current = source.only_user(name)
        if current is None:
            return False
    result = result_of(source, name)  # None if the tensor has other readers
    if result is None:
        return False
    values = dequantized(np.arange(256, dtype=np.uint8).view(x.dtype), x.scale, x.zero, 0)
    table = _table(source, chain, values, result)
    if table is None:
        return False
    importer.take([*(step.index for step, _ in chain), current.index])
    places = {*x.places, *(step.index for step, _ in chain), current.index}
    importer.quantize(x.name, x.scale, x.zero)
    importer.fused["table"] += bool(chain)
    kinds = {step.kind for step, _ in chain}
    importer.emit(Host(
        operator=operator.title, name=operator.name, position=tuple(sorted(places)),
        inputs=(importer.tensor(x.name),), outputs=(importer.tensor(result.name),),
        kernel="table", attributes={"table": table}, reason="no product: a table of 256 results",
        ties="" if kinds <= EXACT else "onnxruntime computes it in float32",
    ))
    return True


def _table(source, chain, values, result):
    """The results of a chain of operators and a quantization; None if one is not a number."""
    for step, name in chain:
        kernel, names, attributes, _ = lower_host(step, source)
        inputs = [values if n == name else (source.constants[n].ravel() if n else None)
                  for n in names]
        with np.errstate(all="ignore"):
            [values] = run(kernel, inputs, attributes)
    if values.shape != (256,) or np.isnan(values).any():
        return None
    with np.errstate(over="ignore"):
        steps = np.rint(values / np.float32(result.scale)) + result.zero
    return np.clip(steps, result.low, result.high).astype(result.dtype)


def _is_unary(source, operator, name):
    """Whether an operator computes a function of ``name``, element by element, in float32."""
    if operator.domain not in ("", "ai.onnx") or operator.kind not in UNARY:
        return False
    others = [n for n in operator.inputs if n and n != name]
    if len(operator.inputs) - operator.inputs.count("") - len(others) != 1:
        return False
    constants = [source.constant(n) for n in others]
    if any(c is None or c.size != 1 for c in constants):
        return False
    if source.types[operator.outputs[0]] != source.types[name]:
        return False
    lowered = lower_host(operator, source)
    return lowered is not None and source.types[name][0] == np.float32


def _qlinear(importer, operator):
    """QLinearSigmoid and QLinearLeakyRelu."""
    source = importer.source
    if operator.kind not in ("QLinearSigmoid", "QLinearLeakyRelu"):
        return False
    names = [*operator.inputs, ""][:5]
    dtype = source.types[names[0]][0]
    numbers = [source.constant(n) if n else np.zeros((), dtype) for n in names[1:5]]
    if any(number is None or number.size != 1 for number in numbers):
        return False
    x_scale, x_zero, y_scale, y_zero = (number.ravel()[0] for number in numbers)
    slope = np.float32(operator.attributes.get("alpha", 0.01))
    function = sigmoid if operator.kind == "QLinearSigmoid" else leaky_relu(slope)
    table = activation_table(
        function, x_scale, x_zero, y_scale, y_zero, mode="onnx", x_dtype=dtype, y_dtype=dtype
    )
    importer.quantize(operator.inputs[0], x_scale, x_zero)
    importer.quantize(operator.outputs[0], y_scale, y_zero)
    importer.emit(Host(
        operator=operator.title, name=operator.name, position=(operator.index,),
        inputs=(importer.tensor(operator.inputs[0]),),
        outputs=(importer.tensor(operator.outputs[0]),),
        kernel="table", attributes={"table": table}, reason="no product: a table of 256 results",
    ))
    return True
