"""The intermediate representation of a network: tensors, and nodes in the order of execution.

Importers write it, the compiler reads it. All objects are frozen; arrays in them are read-only by
convention. A tensor is known by its number, its place in `Graph.tensors`.

Conventions:

- All dimensions of shapes are known: an importer fixes a dynamic batch to 1.
- Feature maps have the layout of their file, ``NHWC`` in TFLite and ``NCHW`` in ONNX; a node that
  depends on it says which (`Gemm.layout`).
- A value q of a quantized tensor stands for ``scale * (q - zero)``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.hints import short, visible

__all__ = [
    "Gemm", "Graph", "Host", "Node", "Quantization", "Recurrence", "Requantization", "State",
    "Tensor", "Window",
]


@dataclass(frozen=True, eq=False)
class Quantization:
    """Scale and zero point of a tensor, or of each slice of it along an axis.

    Attributes
    ----------
    scale : float32 [1] or [slices]
    zero : int64 [1] or [slices]
    axis : int
        Axis of the slices; 0 if there is one scale.
    """

    scale: np.ndarray
    zero: np.ndarray
    axis: int = 0


@dataclass(frozen=True, eq=False)
class Tensor:
    """One tensor of a network.

    Attributes
    ----------
    name : str
        Name in the file, in the form of `weft.hints.visible`; may be empty.
    shape : tuple of int
    dtype : numpy.dtype
    quantization : Quantization or None
    data : array or None
        Value of a constant, of ``shape`` and ``dtype``.
    channels_first : bool
        Its values are the ones of a map in the order channel, row, column. A network core keeps the
        channels of a pixel together, so its host rearranges the values. The division for such a
        core sets it (`weft.models.network_core.channels_first`).
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    quantization: Quantization | None = None
    data: np.ndarray | None = None
    channels_first: bool = False

    def __post_init__(self):
        _show(self, "name")


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """One step of a network.

    Attributes
    ----------
    operator : str
        Operator as the file names it: ``CONV_2D``, ``QLinearConv``.
    name : str
        Name of the operator in the file, or of its first output, in the form of
        `weft.hints.short`; for messages.
    position : tuple of int
        Places in the file of the operators that the node stands for, from 0. An importer that
        fuses ``DequantizeLinear, Conv, QuantizeLinear`` to one node gives all of them.
    inputs, outputs : tuple of int
        Tensors. -1 is an optional input that is absent.
    ties : str
        Why the runtime may round a result next to a tie to the other side, for people; empty if
        every result is equal: `weft.models.exactness`.
    refused : mapping of str to str
        Messages by mode: modes whose runtime refuses the node (`weft.models.exactness`).
    """

    operator: str
    name: str
    position: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    ties: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        _show(self, *(part for part in ("operator", "name", "reason") if hasattr(self, part)))
        object.__setattr__(self, "name", short(self.name))


@dataclass(frozen=True)
class Window:
    """The geometry of a convolution: which inputs each output is computed from.

    Output (oy, ox) reads the inputs ``(oy * stride[0] + ky * dilation[0] - top,
    ox * stride[1] + kx * dilation[1] - left)`` for all ky, kx of the kernel. An input outside the
    map is the zero point of x. Before that the map is spread: ``spread[i] - 1`` zero points are
    inserted between neighbours along axis i (transposed convolutions).

    Attributes
    ----------
    kernel, stride, dilation, spread : (int, int)
        Of height and width.
    padding : (int, int, int, int)
        top, bottom, left, right; may be negative, which crops the spread map.
    input, output : (int, int)
        Height and width of the maps; ``input`` before it is spread.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]
    input: tuple[int, int]
    output: tuple[int, int]
    spread: tuple[int, int] = (1, 1)


@dataclass(frozen=True, eq=False)
class Requantization:
    """Conversion of sums to 8-bit results: ``table[clamp(round(sum * scale) + zero, low, high)]``.

    ``scale`` is ``x_scale * w_scale / y_scale``; the mode of the network decides how the product
    is formed and rounded (`weft.quantize.tflite_scale`, `weft.quantize.onnx_scale`).

    Attributes
    ----------
    x_scale, y_scale : float
        float32 values.
    w_scale : float32 [1] or [groups * N]
    zero, low, high : int
        Zero point and limits of the results, in the range of ``dtype``.
    dtype : numpy.dtype
        int8 or uint8; int16 for an int16 x.
    wide : bool
        The sums have 64 bits and the multiplier 16 (int16 x, with a bias of 64 bits or none):
        ``weft.models.kernels.fixed_point.multiply_wide``.
    """

    x_scale: float
    w_scale: np.ndarray
    y_scale: float
    zero: int
    low: int
    high: int
    dtype: np.dtype
    wide: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Gemm(Node):
    """A matrix product: every operator that can run on Weft becomes one.

    ::

        sums[g] = (x[g] - x_zero) @ (weights[g] - w_zero) + bias
        y = requantize(sums), or sums, or float32

    Without a window x is [..., M, K], and y [..., M, groups * N] (``groups`` is 1); with constant
    weights the values of x, in their order, count as [M, K], and y has the shape of its tensor
    (a fully connected layer flattens its input). With a window x
    is a batch of feature maps; row (b, oy, ox) of ``x[g]`` holds the inputs of the window in the
    order ky, kx, c, where c counts the channels of group g. Channel ``g * N + n`` of y is column n
    of group g. A depthwise convolution has as many groups as x has channels.

    Attributes
    ----------
    x : int
        Tensor of the activations; its first input. int8, uint8, int16 or float32.
    x_zero : int
        Zero point of x; 0 for float32.
    weights : array [groups, K, N], or None
        int8 or uint8 (float32 if x is). None: the second operand is the tensor ``b``.
    w_zero : int64 [1] or [groups * N]
        Zero points of the weights.
    b : int or None
        Tensor [..., K, N] of a product of two activations; its batch broadcasts against x's batch.
    x_transposed, b_transposed : bool
        The tensor is stored as [..., K, M], or [..., N, K].
    bias : int64 [groups * N] (float32 if x is), or None
    window : Window or None
    layout : str
        ``NHWC`` or ``NCHW``: axes of x and y with a window.
    requantization : Requantization or None
        None: y holds the sums (int32, or int64 if x is int16), or float32.
    single : Requantization or None
        That of the mode ``single``, if it differs: `weft.models.exactness`.
    activation : str
        Activation of a float32 product: ``none``, ``relu`` or ``relu6``. Activations of a quantized
        product are limits of the requantization.
    table : array [256] or None
        Results by the byte of the requantized value; of the type of y. An importer leaves it None:
        the compiler fuses table operators.
    left_out : int
        Multiply-accumulate operations of the operator that are left out: `dead_channels`. An
        importer leaves it 0.
    """

    x: int
    x_zero: int = 0
    weights: np.ndarray | None = None
    w_zero: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    b: int | None = None
    x_transposed: bool = False
    b_transposed: bool = False
    bias: np.ndarray | None = None
    window: Window | None = None
    layout: str = "NHWC"
    requantization: Requantization | None = None
    single: Requantization | None = None
    activation: str = "none"
    table: np.ndarray | None = None
    left_out: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Host(Node):
    """An operator that the host computes, exactly.

    `weft.models.kernels.run(kernel, inputs, attributes)` computes it from the values of its
    inputs, constants included.

    Attributes
    ----------
    kernel : str
        Name in `weft.models.kernels.KERNELS`: ``reshape``, ``table``, ``transpose`` ... where all
        runtimes agree; ``tflite.add``, ``onnx.add`` ... with the numerics of one runtime;
        ``tflite.model`` and ``onnx.model`` run a sub-model in the runtime itself.
    attributes : mapping of str
        Arguments of the kernel: numbers, strings, tuples of them, arrays, and bytes (a sub-model).
    reason : str
        Why it does not run on Weft, for people: "no product", "softmax needs a reduction".
    macs : int
        Multiply-accumulate operations of its products; 0 if it has none.
    single : tuple of str and mapping, or None
        Kernel and attributes for the mode ``single``, if they differ: `weft.models.exactness`.
    """

    kernel: str
    attributes: Mapping[str, Any]
    reason: str
    macs: int = 0
    single: tuple[str, Mapping[str, Any]] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Recurrence(Node):
    """A recurrent layer: products of its state with constant weights, at each step in time.

    The kernel computes the node from the values of its inputs, as the kernel of a `Host` does, and
    asks for the products: `weft.models.kernels.recurrence`.

    Attributes
    ----------
    kernel : str
        Name in `weft.models.kernels.RECURRENT`.
    attributes : mapping of str
        Arguments of the kernel, as in `Host`.
    products : tuple of Gemm
        With constant weights and without a window. Their tensors ``x`` and ``y`` have type and
        shape of the operand and of the sums of one step; they exist only while the node runs.
    steps : int
        How often each product is computed in an inference.
    reason : str
        What the host computes, for people.
    """

    kernel: str
    attributes: Mapping[str, Any]
    products: tuple[Gemm, ...]
    steps: int
    reason: str


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """A variable of a network, which keeps its value from inference to inference.

    Attributes
    ----------
    name : str
        Name in the file.
    initial : array
        Its value before the first inference.
    before : int
        Tensor with its value when an inference starts: nodes read it, none writes it.
    after : int
        Tensor whose value it has when the inference has ended; of the same shape and type.
    position : tuple of int
        Places in the file of the operators that write it, the last one at the end; without one, of
        the first one that reads it.
    """

    name: str
    initial: np.ndarray
    before: int
    after: int
    position: tuple[int, ...]

    def __post_init__(self):
        _show(self, "name")


@dataclass(frozen=True, eq=False, kw_only=True)
class Graph:
    """A whole network, as an importer gives it.

    Attributes
    ----------
    name : str
        Name of the file without its suffix.
    source : str
        ``tflite`` or ``onnx``: whose numerics the network has.
    tensors : tuple of Tensor
    nodes : tuple of Node
        In an order in which every input is computed before it is used.
    inputs, outputs : tuple of int
        Tensors.
    operators : tuple of str
        The operators of the file, in its order; `Node.position` counts in it.
    notes : tuple of str
        Facts about the import that a user should know.
    states : tuple of State
        Its variables.
    unlike : mapping of str to str
        Modes whose runtime has other results for the whole file, and why, for people.
    """

    name: str
    source: str
    tensors: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[str, ...]
    notes: tuple[str, ...] = ()
    states: tuple[State, ...] = ()
    unlike: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        _show(self, "name")
        for name in ("operators", "notes"):
            object.__setattr__(self, name, tuple(map(visible, getattr(self, name))))

    @property
    def results(self) -> tuple[int, ...]:
        """The tensors that are read when all nodes have ended: outputs, and values of states."""
        return (*self.outputs, *(state.after for state in self.states))


def _show(part, *names):
    """Make texts of a file visible: they are printed, in reports and in messages."""
    for name in names:
        object.__setattr__(part, name, visible(getattr(part, name)))
