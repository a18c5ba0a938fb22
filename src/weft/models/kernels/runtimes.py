"""Kernels that run a sub-model in its runtime; the packages are imported when one runs."""

__all__ = ["onnx_model", "tflite_model"]


def onnx_model(inputs, attributes, state):
    """The outputs of a model of one node: `weft.models.onnx.fallback.run_model`.

    ``model`` : bytes.
    """
    from weft.models.onnx.fallback import run_model

    return run_model(attributes["model"], inputs, state)


def tflite_model(inputs, attributes, state):
    """The outputs of a TFLite model: `weft.models.tflite.runtime.model`."""
    from weft.models.tflite.runtime import model

    return model(inputs, attributes, state)
