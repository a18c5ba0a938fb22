"""Whole ONNX files in onnxruntime, to compare results with."""

from weft.models.onnx.fallback import needs_runtime, open_session, run_session

__all__ = ["ort", "with_outputs"]


def ort(data: bytes, inferences: list, *, optimized: bool) -> list:
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

    Raises
    ------
    ModelError
        If onnxruntime is not installed, or it cannot run the file.
    """
    needs_runtime("a check with ort")
    session = open_session(data, "the network", optimized=optimized)
    names = [value.name for value in session.get_inputs()]
    return [
        run_session(session, dict(zip(names, inputs, strict=True)), "the network")
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
