"""How exactly the outputs of a network equal those of its runtime: the claim, and its limits.

Weft prints the claim in its first line, and ``--check`` allows what it allows.
"""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from weft.config import Config
from weft.models.errors import KindError, ModelError
from weft.models.ir import Gemm, Graph, Host, Node, Recurrence

__all__ = ["EXACT", "RUNTIMES", "Exactness", "check_kind", "exactness_of", "in_mode"]


def in_mode(graph: Graph, mode: str) -> Graph:
    """The graph with the kernels and limits of a mode: `Host.single`, `Gemm.single` in ``single``.

    Raises ModelError if the runtime of the mode refuses a node (`Node.refused`).
    """
    return dataclasses.replace(graph, nodes=tuple(_node(node, mode) for node in graph.nodes))


def check_kind(graph: Graph, mode: str) -> None:
    """Raise KindError if a network core with ``mode`` rounds as another runtime than the file's."""
    if (graph.source == "onnx") == (mode == "onnx"):
        return
    runtime, suffix, other = (
        ("onnxruntime", "onnx", "'tflite'") if mode == "onnx"
        else ("TensorFlow Lite", "tflite", "'onnx'")
    )
    raise KindError(
        f"{graph.name}: a network core with requantize = {mode!r} has the rounding of {runtime},"
        f" and the network must be a .{suffix} file, not .{graph.source}; a network core with"
        f" requantize = {other} computes it"
    )


def _node(node, mode):
    if mode in node.refused:
        others = " or ".join({"tflite", "single"} - {*node.refused})
        raise ModelError(f"{node.refused[mode]}; a Config with requantize = {others!r} computes it")
    if not isinstance(node, Host | Gemm) or node.single is None:
        return node
    if isinstance(node, Gemm):
        found = node.single if mode == "single" else node.requantization
        return dataclasses.replace(node, requantization=found, single=None)
    kernel, attributes = node.single if mode == "single" else (node.kernel, node.attributes)
    return dataclasses.replace(node, kernel=kernel, attributes=attributes, single=None)


# By the mode of a program: the runtime with the same results.
RUNTIMES = {"tflite": "TFLite Micro", "single": "LiteRT", "onnx": "onnxruntime"}
FLOAT32 = 1e-5  # of the largest value: sums of float32 depend on their order
ROW = 1 / 128  # of the largest value: a step of a row that is quantized at run time
BFLOAT16 = 2.0**-6  # the operands of a bf16 core have 8 significant bits
# Kernels whose float32 results are fixed by IEEE 754, or are values of their inputs.
EXACT = frozenset({
    "arg_max", "arg_min", "broadcast", "concatenation", "gather", "litert.quantize",
    "litert.quantize_rows", "maximum", "minimum", "mirror_pad", "onnx.abs", "onnx.add", "onnx.cast",
    "onnx.ceil", "onnx.clip", "onnx.dequantize", "onnx.divide", "onnx.dynamic_quantize",
    "onnx.equal", "onnx.floor", "onnx.gather", "onnx.greater", "onnx.less", "onnx.max_pool",
    "onnx.model", "onnx.multiply", "onnx.negative", "onnx.quantize", "onnx.relu", "onnx.round",
    "onnx.select", "onnx.sqrt", "onnx.subtract", "pad", "read_variable", "rearrange", "reduce_max",
    "reduce_min", "reshape", "reverse", "select", "slice", "split", "stack", "table", "tflite.abs",
    "tflite.cast", "tflite.ceil", "tflite.clip", "tflite.dequantize", "tflite.equal",
    "tflite.floor", "tflite.greater", "tflite.greater_equal", "tflite.less", "tflite.less_equal",
    "tflite.max_pool", "tflite.model", "tflite.neg", "tflite.not_equal", "tflite.plain_add",
    "tflite.plain_div", "tflite.plain_mul", "tflite.plain_squared_difference", "tflite.plain_sub",
    "tflite.quantize", "tflite.resize_nearest", "tflite.round", "tflite.sqrt", "tflite.square",
    "tile", "transpose", "unstack",
})


@dataclass(frozen=True)
class Exactness:
    """How exactly the outputs of a program equal those of its runtime.

    Attributes
    ----------
    claim : str
        For people: ``equal to TFLite Micro in mode tflite``.
    absolute, relative : tuple of float
        For each output: two values may differ by ``absolute + relative * largest``, where
        ``largest`` is the largest value of the runtime's output. Both are 0 for equal bits.
    """

    claim: str
    absolute: tuple[float, ...]
    relative: tuple[float, ...]


def exactness_of(graph: Graph, mode: str, config: Config) -> Exactness:
    """Return how exactly a network equals its runtime, on a core with ``config``.

    ``graph`` has the kernels of the mode (`weft.models.exactness.in_mode`).
    """
    return _Analysis(graph, mode, config).exactness()


@dataclass(frozen=True)
class _Distance:
    """How far the values of a tensor may be from the runtime's.

    ``steps`` is absolute, in steps of an integer, or in values of a float; ``relative`` is a part
    of the largest value.
    """

    steps: float = 0.0
    relative: float = 0.0


_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
# Operators of .tflite files that the package of TFLite Micro does not have, and Weft computes.
_IN_LITERT_ONLY = (
    "BIDIRECTIONAL_SEQUENCE_LSTM", "RANGE", "RANK", "REDUCE_PROD", "RELU_0_TO_1", "SELECT", "TILE",
)
# The types that TFLite Micro has of operators that Weft computes in more types: of the result, or
# of the operands of `_BY_OPERANDS`; both of CAST. It has int8 in place of quantized uint8.
_COMPARISONS = ("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
_BY_OPERANDS = (
    *_COMPARISONS, "ARG_MAX", "ARG_MIN", "CAST", "DEQUANTIZE", "EQUAL", "NOT_EQUAL",
)
_IN_MICRO = {name: {*types.split()} for names, types in (
    (("ARG_MAX", "ARG_MIN", "BATCH_TO_SPACE_ND", "DEPTH_TO_SPACE", "GATHER", "MIRROR_PAD",
      "REDUCE_MAX", "REDUCE_MIN", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH"), "int8 float32"),
    (("EXPAND_DIMS", "RESIZE_NEAREST_NEIGHBOR", "SELECT_V2", "TRANSPOSE"), "int8 int16 float32"),
    (("FILL",), "int8 int32 float32"),
    (("ADD", "MUL", "PAD", "PADV2", "SPLIT", "SPLIT_V", "SQUARED_DIFFERENCE", "SUB", "UNPACK"),
     "int8 int16 int32 float32"),
    (("SLICE", "STRIDED_SLICE"), "int8 int16 int32 bool float32"),
    (_COMPARISONS, "int8 int32 int64 float32"),
    (("EQUAL", "NOT_EQUAL"), "int8 int32 int64 bool float32"),
    (("MAXIMUM", "MINIMUM", "PACK"), "int8 int16 int32 int64 float32"),
    (("CONCATENATION", "REVERSE_V2"), "int8 int16 int32 int64 bool float32"),
    (("DEQUANTIZE",), "int8 int16 int32"),
    (("CAST",), "int8 int16 int32 uint32 bool float32"),
) for name in names}


class _Analysis:
    """Follows the distances through a graph, and collects what the claim must name."""

    def __init__(self, graph, mode, config):
        self._graph, self._mode, self._config = graph, mode, config
        self._runtime = RUNTIMES[mode]
        # Names of operators, in their order:
        self._ties: dict[str, None] = {}
        self._floats: dict[str, None] = {}  # sums or functions of float32
        self._recurrent: dict[str, None] = {}  # recurrent layers in bfloat16
        self._others: dict[str, dict[str, None]] = {}  # by why the runtime differs
        self._products: set[str] = set()  # types of the products that are not of integers
        self._adds_up = False  # whether differences grow from inference to inference

    def exactness(self) -> Exactness:
        graph = self._graph
        distances = self._distances({})
        carried = {
            state.before: distances[state.after]
            for state in graph.states if state.after in distances
        }
        if carried:  # into the next inference
            distances = self._distances(carried)
            self._adds_up = any(
                distances[state.after].steps > carried[state.before].steps
                for state in graph.states if state.before in carried
            )
        ends = [distances.get(number, _Distance()) for number in graph.outputs]
        return Exactness(
            self._claim(), tuple(d.steps for d in ends), tuple(d.relative for d in ends)
        )

    def _distances(self, distances: dict[int, _Distance]) -> dict[int, _Distance]:
        """Return the distances of all tensors; ``found`` has those when an inference starts."""
        distances = dict(distances)
        for node in self._graph.nodes:
            before = {n: distances[n] for n in node.inputs if n in distances}
            own = self._own(node)
            for number in node.outputs:
                if number >= 0:
                    distances[number] = self._after(node, before, own, number)
        return distances

    def _after(self, node, before, own, number):
        """The distance of an output of a node; ``before`` has those of its inputs."""
        x, y = self._tensor_of(node), self._graph.tensors[number]
        integers = x.dtype.kind != "f", y.dtype.kind != "f"
        steps = max((self._steps(node, n, y, d.steps) for n, d in before.items()), default=0.0)
        relative = max((own.relative, *(d.relative for d in before.values())))
        if integers[0] and steps and (isinstance(node, Gemm) and node.requantization is None
                                      or not integers[1] and x.quantization is None):
            # Of sums, a step of the operands is a part of the largest value.
            steps, relative = 0.0, max(relative, steps * ROW)
        elif integers == (True, False) and steps:
            steps *= float(np.max(x.quantization.scale))
        elif integers == (False, True):  # a value next to a tie may become the other step
            return _Distance(max(steps, 1.0) if steps or relative else 0.0)
        return _Distance(steps + own.steps, relative)

    def _steps(self, node, number, y, steps):
        """The steps of an input in those of an output of integers, which may be smaller."""
        x = self._graph.tensors[number]
        is_float = x.dtype.kind == "f"
        if isinstance(node, Gemm) or y.quantization is None or not (is_float or x.quantization):
            return steps
        size = 1.0 if is_float else float(np.max(x.quantization.scale))
        ratio = size / float(np.min(y.quantization.scale))
        return float(math.ceil(steps * ratio * (1 - 1e-6)))  # the scales are rounded

    def _tensor_of(self, node):
        """The tensor whose values a node computes with."""
        numbers = [n for n in node.inputs if n >= 0]
        number = node.x if isinstance(node, Gemm) else (numbers or [node.outputs[0]])[0]
        return self._graph.tensors[number]

    def _own(self, node: Node) -> _Distance:
        """The distance that a node adds."""
        whole = getattr(node, "kernel", "") == "tflite.model" and len(node.position) > 1
        name = "the whole file" if whole else node.operator
        why = self._other(node)
        if why:
            self._others.setdefault(why, {})[name] = None
        if isinstance(node, Gemm | Recurrence):
            gemms = (node,) if isinstance(node, Gemm) else node.products
            if any(self._graph.tensors[gemm.x].dtype == np.float32 for gemm in gemms):
                return self._float_product(name, getattr(node, "steps", 0))
            if isinstance(node, Recurrence) and node.kernel == "litert.lstm":
                self._floats[name] = None
                return _Distance(0.0, ROW)
        elif self._has_floats(node) and (node.kernel not in EXACT or self._has_sums(node)):
            self._floats[name] = None
            return _Distance(0.0, FLOAT32)
        if node.ties or self._has_ties(node):
            self._ties[name] = None
            return _Distance(1.0)
        return _Distance()

    def _float_product(self, name, steps):
        """The distance of a product; ``steps`` in time of a recurrent layer, which amplify it."""
        kind = self._config.data_type
        on_core = kind.acc.name != "int32"
        self._products.add(kind.a.name if on_core else "float32")
        if on_core and steps:
            self._recurrent[name] = None
        return _Distance(0.0, BFLOAT16 * (steps + 1) if on_core else FLOAT32)

    def _has_floats(self, node):
        numbers = (*node.inputs, *node.outputs)
        return any(self._graph.tensors[n].dtype.kind == "f" for n in numbers if n >= 0)

    def _has_sums(self, node):
        """Whether onnxruntime computes a product of floats of the node.

        Alone it adds in another order than in the file, where it packs constant weights.
        """
        dtypes = [self._graph.tensors[n].dtype.kind for n in node.outputs if n >= 0]
        return node.kernel == "onnx.model" and node.macs > 0 and "f" in dtypes

    def _has_ties(self, node):
        """Whether LiteRT rounds a tie of the node in another way than Weft does."""
        if self._mode != "single":
            return False
        if isinstance(node, Gemm):  # LiteRT: a scale of float32, ties to even
            found = node.requantization
            return found is not None and (
                not found.wide or node.operator == "FULLY_CONNECTED"
            )
        if not isinstance(node, Host):
            return False
        x, y = self._tensor_of(node), self._graph.tensors[node.outputs[0]]
        if node.operator == "QUANTIZE":
            return x.dtype != y.dtype and x.dtype in _BYTES and y.dtype in _BYTES
        if node.kernel in ("tflite.add", "tflite.sub") and y.dtype == np.int16:
            return all(math.log2(scale).is_integer() for scale in self._scales(node))
        return node.kernel == "tflite.sum" and y.dtype == np.int16

    def _other(self, node):
        """Why the runtime computes something else than Weft; empty if it does not."""
        kernel = getattr(node, "kernel", "")
        if self._mode == "single":
            if node.operator == "CONV_2D" and self._is_narrow(node):
                return "LiteRT takes its bias of 32 bits for one of 64 bits (a known fault)"
            if kernel == "tflite.model":
                return "it runs in TFLite Micro"
            if kernel == "tflite.lstm" and not self._is_in_litert(node):
                return "LiteRT does not have it, and Weft computes it as TFLite Micro"
            if kernel == "tflite.plain_add" and node.attributes["low"] is not None:
                return "LiteRT applies its activation, Weft and TFLite Micro do not"
            if kernel == "tflite.svdf" and node.attributes["time"].dtype == np.int8:
                return "LiteRT takes its state of 8 bits for one of 16 bits"
            if kernel == "read_variable" and not node.attributes["assigned"]:
                return "in LiteRT the variable has no first value"
            if kernel in ("tflite.add", "tflite.sub") and self._overflows(node):
                return "sums in LiteRT overflow (a known fault)"
        if self._mode == "tflite" and kernel == "litert.quantize_rows":
            return "TFLite Micro has no such products, and Weft computes them as LiteRT"
        if self._mode == "tflite" and self._is_in_litert_only(node):
            return "TFLite Micro does not have it, and Weft computes it as LiteRT"
        if (
            self._mode == "tflite" and kernel == "tflite.svdf" and node.attributes["bias"] is None
        ):
            return "TFLite Micro reads a bias that is not there (a known fault)"
        pads = self._mode == "tflite" and node.operator == "SPACE_TO_BATCH_ND" and kernel == "pad"
        if pads and any(map(any, node.attributes["padding"])):
            return "TFLite Micro pads with bytes that it does not initialize (a known fault)"
        return ""

    def _is_in_litert_only(self, node):
        """Whether TFLite Micro lacks an operator, or its form of a type, which Weft has."""
        if node.operator in _IN_LITERT_ONLY:
            return True
        if (known := _IN_MICRO.get(node.operator)) is not None:
            x, y = self._tensor_of(node), self._graph.tensors[node.outputs[0]]
            tensors = (x,) if node.operator in _BY_OPERANDS else (y,)
            tensors += (y,) if node.operator == "CAST" else ()
            return not known.issuperset(
                "int8" if t.dtype == np.uint8 and t.quantization else str(t.dtype) for t in tensors
            )
        return self._graph.tensors[node.outputs[0]].dtype in _BYTES and node.operator in (
            "EXP", "GELU", "RELU_N1_TO_1"
        )

    def _is_narrow(self, node):
        """Whether a product of int16 has sums of 32 bits."""
        found = node.requantization if isinstance(node, Gemm) else None
        return found is not None and found.dtype == np.int16 and not found.wide

    def _overflows(self, node):
        """Whether the scales of a sum of bytes are too far apart for LiteRT."""
        *scales, _ = self._scales(node)
        is_bytes = self._graph.tensors[node.outputs[0]].dtype in _BYTES
        return is_bytes and max(scales) >= 256 * min(scales)

    def _is_in_litert(self, node):
        """Whether LiteRT has an LSTM: of int8, with a cell of a scale in 2^-15..2^-9."""
        return not node.attributes["wide"] and -15 <= node.attributes["cell_power"] <= -9

    def _scales(self, node):
        numbers = (*node.inputs[:2], node.outputs[0])
        return [float(self._graph.tensors[n].quantization.scale[0]) for n in numbers]

    def _claim(self):
        if self._products:
            degree = "but not equal" if self._products - {"float32"} else "but not always equal"
            kinds = " and ".join(sorted(self._products))
            claim = f"products in {kinds}, so close to {self._runtime} {degree}"
        else:
            claim = f"equal to {self._runtime} in mode {self._mode}"
            if self._mode == "tflite" and self._has_uint8():
                claim = "equal to int8 in TFLite Micro, which has no uint8"
        if why := self._graph.unlike.get(self._mode):
            claim = f"not equal to {self._runtime}: {why}"
        limits = []
        if self._floats and not self._products:
            limits.append(f"float32 results of {_names(self._floats)} are close")
        if self._recurrent:
            limits.append(f"differences grow with the steps of {_names(self._recurrent)}")
        if self._ties:
            limits.append(f"values of {_names(self._ties)} next to ties may differ by 1")
        if self._adds_up:
            limits.append("differences in variables add up from inference to inference")
        limits += [f"not {_names(names)}: {why}" for why, names in self._others.items()]
        return f"{claim}, but {', and '.join(limits)}" if limits else claim

    def _has_uint8(self):
        """Whether quantized values of uint8 are computed."""
        tensors = (self._graph.tensors[n] for node in self._graph.nodes for n in node.outputs
                   if n >= 0)
        return any(t.dtype == np.uint8 and t.quantization is not None for t in tensors)


def _names(operators):
    """Their names for people."""
    return ", ".join(operators)
