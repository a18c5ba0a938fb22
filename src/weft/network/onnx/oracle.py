"""Whole ONNX files in onnxruntime, to compare results with."""

from weft.network.onnx.fallback import needs_runtime, open_session, run_session

__all__ = ["ort"]


def ort(data: bytes, inferences: list) -> list:
    """The outputs of onnxruntime for each inference, node by node as the file has them.

    Optimizations are off. With them, onnxruntime replaces ``DequantizeLinear, Softmax,
    QuantizeLinear`` by ``QLinearSoftmax``, which rounds in another way: the results differ from the
    file's. Products of integers are exact on each processor (`with_exact_products`).

    Parameters
    ----------
    data : bytes
        The file.
    inferences : list of list of array
        The inputs of each inference.

    Raises
    ------
    ModelError
        If onnxruntime is not installed, or it cannot run the file.
    """
    needs_runtime("a check with ort")
    session = open_session(data, "the network")
    names = [value.name for value in session.get_inputs()]
    return [
        run_session(session, dict(zip(names, inputs, strict=True)), "the network")
        for inputs in inferences
    ]
