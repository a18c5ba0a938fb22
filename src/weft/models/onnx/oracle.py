"""Whole ONNX files in onnxruntime, to compare results with."""

from weft.models.onnx.fallback import needs_runtime, open_session, run_session

__all__ = ["ort"]


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
