"""Compares a quantized model with its float model: each tensor, and the decision at the end."""

import math
from dataclasses import dataclass

import numpy as np

from weft.models.errors import ModelError
from weft.models.onnx.fallback import needs_runtime, open_session, run_session

__all__ = ["Agreement", "TensorAgreement", "compare", "ort", "with_outputs"]


def ort(
    data: bytes, inferences: list, *, optimized: bool, name: str = "the network"
) -> list:
    """The outputs of onnxruntime for each inference.

    Parameters
    ----------
    data : bytes
        The file.
    inferences : list of list of array
        The inputs of each inference.
    optimized : bool
        With the default optimizations; otherwise node by node, as the file has them. The former
        replace ``DequantizeLinear, Conv, QuantizeLinear`` by ``QLinearConv``, and others, which
        round in another way.
    name : str
        Of the file, for messages.

    Raises
    ------
    ModelError
        If onnxruntime is not installed, or it cannot run the file.
    """
    needs_runtime("a check with ort")
    session = open_session(data, name, optimized=optimized)
    names = [value.name for value in session.get_inputs()]
    return [
        run_session(session, dict(zip(names, inputs, strict=True)), name)
        for inputs in inferences
    ]


def with_outputs(data: bytes, names: dict[int, str]) -> tuple[bytes, list[int]]:
    """The file with other outputs: the tensors of these names, as far as its nodes compute them.

    Returns the file, and the keys of ``names`` in the order of its outputs.
    """
    import onnx

    model = onnx.ModelProto.FromString(data)
    computed = {name for node in model.graph.node for name in node.output}
    kept = {name: number for number, name in names.items() if name in computed}
    present = {value.name: value for value in model.graph.output}
    del model.graph.output[:]
    model.graph.output.extend(
        present.get(name) or onnx.helper.make_empty_tensor_value_info(name) for name in kept
    )
    return model.SerializeToString(), [*kept.values()]


QUANTIZED = "_DequantizeLinear_Output"  # suffix that onnxruntime's quantization gives


@dataclass(frozen=True)
class TensorAgreement:
    """How well one tensor agrees, over all samples.

    Attributes
    ----------
    name : str
        Tensor of the float model.
    operator : str
        Operator that computes it.
    sqnr : float
        ``10 * log10(sum(f**2) / sum((f - q)**2))`` in dB; infinite if they are equal.
    cosine : float
        ``sum(f * q) / sqrt(sum(f**2) * sum(q**2))``.
    """

    name: str
    operator: str
    sqnr: float
    cosine: float


@dataclass(frozen=True)
class Agreement:
    """All tensors in the order of the float model, and the share of samples with equal top-1.

    ``top1`` is the share of rows of the first output whose largest element is at the same place. If
    this output has integers, it is the share of equal ones: they are the places already.
    """

    rows: tuple[TensorAgreement, ...]
    top1: float


def compare(float_model: bytes, quantized_model: bytes, feeds, advance=None) -> Agreement:
    """Run both models in onnxruntime, node by node, and compare their tensors.

    ``feeds`` are the inputs (`weft.models.onnx.quantize.Feeds`); ``advance`` is called after
    each batch. The sums take no more memory than one batch.

    Raises ModelError if the first output has no values, or shapes of a tensor differ.
    """
    import onnx

    first, second = (onnx.ModelProto.FromString(m) for m in (float_model, quantized_model))
    pairs = _pairs(first, second)
    output = first.graph.output[0].name
    # An output of integers is no pair.
    outputs = pairs if output in dict(pairs) else [*pairs, (output, output)]
    float_session = open_session(_with_outputs(first, [a for a, _ in outputs]), "the float model")
    session = open_session(_with_outputs(second, [b for _, b in outputs]), "the quantized model")
    place = [name for name, _ in outputs].index(output)
    sums = np.zeros((len(pairs), 4))  # of f*f, of (f - q)**2, of f*q, of q*q
    equal = count = 0
    for batch in feeds.batches():
        ours, theirs = float_session.run(None, batch), session.run(None, batch)
        for (name, _), f, q in zip(outputs, ours, theirs, strict=True):
            if f.shape != q.shape:  # it follows from values
                raise ModelError(
                    f"tensor {name} must have one shape, not {f.shape} in the float and {q.shape}"
                    " in the quantized network"
                )
        if not ours[place].size:
            raise ModelError(f"output {output} must have 1 value or more, for a comparison")
        for row, f, q in zip(sums, ours, theirs, strict=False):
            f, q = (value.astype(np.float64).ravel() for value in (f, q))
            with np.errstate(invalid="ignore"):  # an infinite value is not near any other one
                row += f @ f, (f - q) @ (f - q), f @ q, q @ q
        same = _winners(ours[place]) == _winners(theirs[place])
        equal, count = equal + int(same.sum()), count + same.size
        if advance is not None:
            advance()
    operators = {name: node.op_type for node in first.graph.node for name in node.output}
    rows = tuple(
        TensorAgreement(name, operators[name], *_figures(*row))
        for (name, _), row in zip(pairs, sums.tolist(), strict=True)
    )
    return Agreement(rows, equal / count)


def _figures(power, noise, product, quantized_power):
    """SQNR in dB and cosine, of the four sums."""
    if noise == 0:
        return math.inf, 1.0
    scale = math.sqrt(power * quantized_power)
    sqnr = 10 * math.log10(power / noise) if power else -math.inf
    return sqnr, product / scale if scale else 0.0


def _winners(values):
    """Place of the largest element of each row; integers are places already."""
    if not np.issubdtype(values.dtype, np.floating):
        return values
    return np.argmax(values, axis=-1) if values.ndim else np.zeros((), int)


def _pairs(first, second):
    """(float tensor, quantized tensor) of all tensors that both models have, the output included.

    Tensors that are no float32, such as shapes, are left out.
    """
    import onnx

    typed = onnx.shape_inference.infer_shapes(first).graph
    floats = {
        value.name for value in (*typed.value_info, *typed.output)
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    }
    known = {name for node in second.graph.node for name in node.output}
    outputs = {value.name for value in first.graph.output}
    pairs = []
    for node in first.graph.node:
        for name in node.output:
            twin = name if name in outputs or name + QUANTIZED not in known else name + QUANTIZED
            if name in floats and twin in known:
                pairs.append((name, twin))
    return pairs


def _with_outputs(model, names):
    """The bytes of a model whose outputs are ``names``."""
    from onnx import TensorProto, helper

    present = {value.name: value for value in model.graph.output}
    outputs = [
        present.get(name) or helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in names
    ]
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    return model.SerializeToString()
