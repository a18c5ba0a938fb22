"""Whole TFLite files in their runtimes, TFLite Micro and LiteRT, to compare results with."""

from weft.hints import to_install
from weft.models.errors import ModelError
from weft.models.tflite.runtime import memory, model

__all__ = ["litert", "tflm"]


def tflm(data: bytes, inferences: list, tensors, outputs: int) -> list:
    """Return the outputs of TFLite Micro for each inference.

    Parameters
    ----------
    data : bytes
        The file.
    inferences : list of list of array
        The inputs of each inference.
    tensors : sequence of weft.models.ir.Tensor
        All tensors of the file, for the memory that they need.
    outputs : int
        Number of outputs.

    Raises
    ------
    ModelError
        If the package tflite-micro is not installed, or it cannot run the file.
    """
    attributes = {
        "model": data, "memory": memory(tensors), "label": "the network", "outputs": outputs,
    }
    state: dict = {}
    return [model(inputs, attributes, state) for inputs in inferences]


def litert(data: bytes, inferences: list) -> list:
    """Return the outputs of LiteRT, with its default kernels, for each inference.

    Raises ModelError if the package ai-edge-litert is not installed, or it cannot run the file.
    """
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise ModelError(
            f"the package ai-edge-litert is not installed; {to_install(extra='interop')}"
        ) from error
    try:
        interpreter = Interpreter(model_content=data, num_threads=1)
        interpreter.allocate_tensors()
        places = [detail["index"] for detail in interpreter.get_input_details()]
        outputs = [detail["index"] for detail in interpreter.get_output_details()]
        results = []
        for inputs in inferences:
            for place, value in zip(places, inputs, strict=True):
                interpreter.set_tensor(place, value)
            interpreter.invoke()
            results.append([interpreter.get_tensor(place) for place in outputs])
    except (RuntimeError, ValueError) as error:
        text = " ".join(str(error).split())[:300]
        raise ModelError(f"LiteRT cannot run the network: {text}") from error
    return results
