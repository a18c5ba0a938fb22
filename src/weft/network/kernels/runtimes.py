"""Kernels that run a sub-model in its runtime; the packages are imported when one runs."""

__all__ = ["tflite_model"]


def tflite_model(inputs, attributes, state):
    """The outputs of a TFLite model: `weft.network.tflite.runtime.model`."""
    from weft.network.tflite.runtime import model

    return model(inputs, attributes, state)
