"""Operators that only move values, between DequantizeLinear and QuantizeLinear: on the bytes."""

from weft.models.ir import Host
from weft.models.onnx.host import lower as lower_host
from weft.models.onnx.operands import from_dequantize, result_of

__all__ = ["lower"]

MOVES = {
    "Concat", "Flatten", "MaxPool", "Reshape", "Resize", "Slice", "Squeeze", "Transpose",
    "Unsqueeze",
}


def lower(importer, operator) -> bool:
    """Append the node of an operator that moves bytes; False if the operator does not fit.

    All its operands and its result have one scale and one zero point. Then
    ``quantize(dequantize(q))`` is q, and the operator may work on q itself. MaxPool may, too,
    because the scale is above 0.
    """
    source = importer.source
    if operator.domain not in ("", "ai.onnx") or operator.kind not in MOVES:
        return False
    result = result_of(source, operator.outputs[0])
    lowered = lower_host(operator, source)
    if result is None or len(result.places) != 1 or lowered is None:
        return False
    kernel, names, attributes, reason = lowered
    operands = [from_dequantize(source, name) for name in names]
    for x in operands:
        if x is None or x.data is not None or x.dtype != result.dtype:
            return False
        if x.scale.size != 1 or (x.scale[0], int(x.zero[0])) != (result.scale, result.zero):
            return False
    places = {operator.index, *result.places, *(place for x in operands for place in x.places)}
    importer.take(result.places)
    importer.emit(Host(
        operator=operator.title, name=operator.name, position=tuple(sorted(places)),
        inputs=tuple(importer.tensor(x.name) for x in operands),
        outputs=(importer.tensor(result.name),), kernel=kernel, attributes=attributes,
        reason=reason,
    ))
    return True
