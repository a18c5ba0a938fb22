"""Products that onnxruntime computes exactly on each processor."""

from typing import NamedTuple

import numpy as np

__all__ = ["with_exact_products"]


OLDEST = 7  # the operator set in which Cast and Add have the form of today


class Places(NamedTuple):
    """Numbers of the inputs of a product; None for activations that the product quantizes."""

    activations: int | None
    weights: int
    zero_point: int


PRODUCTS = {
    "ConvInteger": Places(0, 1, 3),
    "DynamicQuantizeMatMul": Places(None, 1, 3),
    "MatMulInteger": Places(0, 1, 3),
    "MatMulIntegerToFloat": Places(0, 1, 5),
    "QGemm": Places(0, 3, 5),
    "QLinearConv": Places(0, 3, 5),
    "QLinearMatMul": Places(0, 3, 5),
}


def with_exact_products(model):
    """Return the model with ``uint8`` weights in place of ``int8`` ones, if activations are uint8.

    On x86 processors without VNNI, onnxruntime adds two products of uint8 and int8 in 16 bits, and
    saturates the sum. It computes products of uint8 and uint8 exactly on all processors. The
    results are equal, as weights and their zero point both move by 128:

        (w + 128) - (zero_point + 128) = w - zero_point

    Parameters
    ----------
    model : onnx.ModelProto

    Returns
    -------
    onnx.ModelProto
        A new one, unless no product needs it.
    """
    if not any(node.op_type in PRODUCTS for node in model.graph.node):
        return model
    types = _types(model)
    if not any(_saturates(node, types) for node in model.graph.node):
        return model
    moved = _with_casts(model)
    nodes = list(moved.graph.node)
    nodes = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del moved.graph.node[:]
    for node in nodes:
        if _saturates(node, types):
            moved.graph.node.extend(_moved(node, moved.graph))
        else:
            moved.graph.node.append(node)
    return moved


def _with_casts(model):
    """A copy of the model in an operator set that has the nodes of `_moved`."""
    from onnx import helper

    from weft.models.onnx.conversion import convert
    from weft.models.onnx.reading import OPSET

    moved = type(model)()
    moved.CopyFrom(model)
    standard = [entry for entry in moved.opset_import if entry.domain in ("", "ai.onnx")]
    if not standard:
        moved.opset_import.append(helper.make_opsetid("", OPSET))
    elif standard[0].version < OLDEST:
        if any(node.domain in ("", "ai.onnx") for node in moved.graph.node):
            return type(model).FromString(convert(model.SerializeToString(), "the model", OPSET))
        standard[0].version = OPSET
    return moved


def _types(model):
    """The element types of tensors by name, as far as onnx knows them."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(model).graph
    values = [*graph.input, *graph.value_info, *graph.output]
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    return types | {tensor.name: tensor.data_type for tensor in graph.initializer}


def _saturates(node, types):
    from onnx import TensorProto

    if node.op_type not in PRODUCTS:
        return False
    places = PRODUCTS[node.op_type]
    if places.activations is not None:
        # The zero point of QLinear products follows the activations and their scale.
        known = [types.get(name) for name in node.input[places.activations :][:3:2]]
        if TensorProto.UINT8 not in known:
            return False
    return types.get(node.input[places.weights]) == TensorProto.INT8


def _moved(node, graph):
    """Nodes that move the weights and their zero point by 128, and the product."""
    from onnx import NodeProto, TensorProto, helper, numpy_helper

    places = PRODUCTS[node.op_type]
    prefix = f"{node.output[0]}/exact"
    constants = {"128": np.int32(128), "zero": np.int8(0)}
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), f"{prefix}/{name}")
        for name, value in constants.items()
    )
    product = NodeProto()
    product.CopyFrom(node)
    while len(product.input) <= places.zero_point:
        product.input.append("")
    nodes = []
    for place in (places.weights, places.zero_point):
        name = f"{prefix}/{place}"
        signed = product.input[place] or f"{prefix}/zero"
        nodes += [
            helper.make_node("Cast", [signed], [f"{name}/wide"], to=TensorProto.INT32),
            helper.make_node("Add", [f"{name}/wide", f"{prefix}/128"], [f"{name}/sum"]),
            helper.make_node("Cast", [f"{name}/sum"], [f"{name}/uint8"], to=TensorProto.UINT8),
        ]
        product.input[place] = f"{name}/uint8"
    return [*nodes, product]
