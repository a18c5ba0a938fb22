"""Whole TFLite files in their runtimes, TFLite Micro and LiteRT, to compare results with."""

import struct

import tflite

from weft.hints import to_install
from weft.models.errors import ModelError
from weft.models.tflite.runtime import memory, model

__all__ = ["litert", "tflm", "with_outputs"]


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


def with_outputs(data: bytes, numbers: list[int]) -> tuple[bytes, list[int]]:
    """The file with other outputs: these tensors, as far as the file has them, each once.

    A new vector of outputs is appended to the file, and the field of the first subgraph leads to
    it: offsets of flatbuffers are relative, and lead forward.

    Returns the file, and the tensors in the order of its outputs.
    """
    graph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    count = graph.TensorsLength()
    kept = [number for number in dict.fromkeys(numbers) if number < count]
    table = graph._tab  # the parser has no other way to a field's place
    place = table.Pos + table.Offset(8)  # the third field: outputs
    vector = struct.pack(f"<I{len(kept)}i", len(kept), *kept)
    start = -(-len(data) // 4) * 4
    whole = bytearray(data.ljust(start, b"\0") + vector)
    whole[place : place + 4] = struct.pack("<I", start - place)
    return bytes(whole), kept
