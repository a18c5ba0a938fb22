"""Which operators a network core computes, by its options: for ``weft info``, and for remedies."""

import contextlib
import dataclasses

from weft.config import ConfigError
from weft.network_core.config import NetworkCoreConfig

__all__ = ["KERNELS", "operator_lines"]

# Names in TensorFlow Lite, by the kernels that `weft.models.network_core.operators` lowers.
KERNELS = {
    "broadcast": ("BROADCAST_TO",), "concatenation": ("CONCATENATION",), "gather": ("GATHER",),
    "litert.add": ("ADD", "SUB"), "litert.mul": (), "litert.resize_bilinear": ("RESIZE_BILINEAR",),
    "litert.sum": ("MEAN", "SUM"), "maximum": ("MAXIMUM",), "minimum": ("MINIMUM",),
    "mirror_pad": ("MIRROR_PAD",), "pad": ("PAD", "PADV2"),
    "rearrange": ("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), "reduce_max": ("REDUCE_MAX",),
    "reduce_min": ("REDUCE_MIN",), "reverse": ("REVERSE_V2",), "slice": ("SLICE", "STRIDED_SLICE"),
    "split": ("SPLIT", "SPLIT_V"), "stack": ("PACK",), "tflite.add": ("ADD",),
    "tflite.average_pool": ("AVERAGE_POOL_2D",), "tflite.max_pool": ("MAX_POOL_2D",),
    "tflite.mean": ("MEAN",), "tflite.mul": (), "tflite.prelu": ("PRELU",),
    "tflite.resize_bilinear": ("RESIZE_BILINEAR",),
    "tflite.resize_nearest": ("RESIZE_NEAREST_NEIGHBOR",), "tflite.softmax": (),
    "tflite.sub": ("SUB",), "tflite.sum": ("SUM",), "tile": ("TILE",), "transpose": ("TRANSPOSE",),
    "unstack": ("UNPACK",),
}
_OTHERS = (  # products, new names, and functions of one byte
    "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "RESHAPE", "SQUEEZE",
    "EXPAND_DIMS", "MUL by constants", "ABS", "ELU", "GELU", "HARD_SWISH", "LEAKY_RELU",
    "LOGISTIC", "QUANTIZE", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "TANH",
)
_ONNX = (
    "Add", "AveragePool", "Concat", "Conv", "Flatten", "Gemm", "GlobalAveragePool", "MatMul",
    "MaxPool", "Pad", "QLinearAdd", "QLinearConcat", "QLinearConv", "QLinearGlobalAveragePool",
    "QLinearMatMul", "ReduceMean", "Reshape", "functions of one value",
)
_OPTIONS = {"multiply_maps": "MUL of two maps", "softmax": "SOFTMAX"}


def operator_lines(config: NetworkCoreConfig) -> list[str]:
    """Return lines with the operators that a core computes without the host."""
    rule = "if their maps have 8 bits and their results are exact"
    if config.array.requantize == "onnx":
        return [f"operators of ONNX, {rule}: {', '.join(_ONNX)}"]
    options = {field: text for field, text in _OPTIONS.items() if _may_have(config, field)}
    names = {name for group in KERNELS.values() for name in group}
    names |= {*_OTHERS, *(text for field, text in options.items() if getattr(config, field))}
    return [
        f"operators of TensorFlow Lite, {rule} (docs/operators.md): {', '.join(sorted(names))}"
    ] + [
        f"with {field} = true in [network_core] also: {text}"
        for field, text in options.items() if not getattr(config, field)
    ]


def _may_have(config, option):
    """Whether a core with these other fields may have an option."""
    with contextlib.suppress(ConfigError):
        dataclasses.replace(config, **{option: True})
        return True
    return False
