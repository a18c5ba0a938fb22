"""Functions of one 8-bit number become tables of 256 results.

They lie between DequantizeLinear and QuantizeLinear, or are QLinearSigmoid and QLinearLeakyRelu.
"""

import numpy as np

from weft.models.ir import Host
from weft.models.kernels import run
from weft.models.onnx.host import lower as lower_host
from weft.models.onnx.operands import QuantizedResult, from_dequantize, from_names, result_of
from weft.models.onnx.source import dequantized

__all__ = ["lower"]

UNARY = {
    "Abs", "Add", "Ceil", "Clip", "Div", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid",
    "HardSwish", "LeakyRelu", "Log", "Mul", "Neg", "Pow", "Relu", "Round", "Selu", "Sigmoid",
    "Softplus", "Softsign", "Sqrt", "Sub", "Tanh",
}
# IEEE 754 fixes their results in float32.
EXACT = {"Abs", "Add", "Ceil", "Clip", "Div", "Floor", "Mul", "Neg", "Relu", "Round", "Sqrt", "Sub"}
APPROXIMATE = "onnxruntime computes it in float32"  # so a value next to a tie may differ by 1
BYTES = np.arange(256, dtype=np.uint8)  # entry i of a table is the result of the byte i


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
    values = dequantized(BYTES.view(x.dtype), x.scale, x.zero, 0)
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
        ties="" if kinds <= EXACT else APPROXIMATE,
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
    return _quantized(values, result)


def _quantized(values, result):
    """The steps of a `QuantizedResult` next to float32 values."""
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
    """QLinearSigmoid and QLinearLeakyRelu: in float32, as onnxruntime makes its tables."""
    source = importer.source
    if operator.kind not in ("QLinearSigmoid", "QLinearLeakyRelu"):
        return False
    names = [*operator.inputs, "", ""][:5]
    x = from_names(source, *names[:3])
    y = from_names(source, operator.outputs[0], *names[3:])
    if any(end is None or end.scale is None or end.scale.size != 1 or end.zero.size != 1
           for end in (x, y)):
        return False
    kernel, attributes, ties = "onnx.sigmoid", {}, APPROXIMATE
    if operator.kind == "QLinearLeakyRelu":  # IEEE 754 fixes its products
        kernel, ties = "onnx.leaky_relu", ""
        attributes = {"alpha": operator.attributes.get("alpha", 0.01)}
    with np.errstate(all="ignore"):
        values = dequantized(BYTES.view(x.dtype), x.scale, x.zero, 0)
        [values] = run(kernel, [values], attributes)
    if np.isnan(values).any():
        return False
    limits = np.iinfo(y.dtype)
    result = QuantizedResult(y.name, y.dtype, y.scale[0], int(y.zero[0]), limits.min, limits.max)
    importer.quantize(x.name, x.scale, x.zero)
    importer.quantize(y.name, y.scale, y.zero)
    importer.emit(Host(
        operator=operator.title, name=operator.name, position=(operator.index,),
        inputs=(importer.tensor(x.name),), outputs=(importer.tensor(y.name),), kernel="table",
        attributes={"table": _quantized(values, result)},
        reason="no product: a table of 256 results", ties=ties,
    ))
    return True
