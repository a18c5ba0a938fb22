"""Whole ONNX files in onnxruntime, to compare results with."""

from weft.network.errors import ModelError
from weft.network.onnx.fallback import needs_runtime

__all__ = ["ort"]


def ort(data: bytes, names: list[str], inferences: list) -> list:
    """Return the outputs of onnxruntime, with its default optimizations, for each inference.

    Parameters
    ----------
    data : bytes
        The file.
    names : list of str
        Names of the inputs.
    inferences : list of list of array
        The inputs of each inference.

    Raises
    ------
    ModelError
        If onnxruntime is not installed, or it cannot run the file.
    """
    needs_runtime("a check with ort")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        return [
            session.run(None, dict(zip(names, inputs, strict=True))) for inputs in inferences
        ]
    except Exception as error:  # of many types, from C++
        text = " ".join(str(error).split())[:300]
        raise ModelError(f"onnxruntime cannot run the network: {text}") from error
