"""The file as the builders of nodes see it: tensors by place, constants, shapes."""

import dataclasses
import math

import numpy as np

from weft.models import kernels
from weft.models.exactness import EXACT
from weft.models.ir import Host

__all__ = ["Context", "Fallback"]

ELEMENTS = (1 << 31) - 1  # of a tensor
FOLDED = 1 << 20  # bytes of an operator that becomes a constant


class Fallback(Exception):
    """The runtime must compute this operator; the text is the reason."""


class Context:
    """A file during its import.

    Constants that operators compute are added to ``values`` (``fold``).
    """

    def __init__(self, file):
        self.file = file
        self.values = {
            i: tensor.data for i, tensor in enumerate(file.tensors) if tensor.data is not None
        }
        self.added = []  # tensors that are not in the file
        self.hybrid = 0  # products of float32 activations and int8 weights
        self.resized = set()  # tensors whose stored size is wrong
        self._converted = {}
        self._folded = 0  # bytes of operators that became constants
        self._budget = 16 * len(file.data) + 4096  # bytes of copies of constants

    def spend(self, operator, size):
        """Count bytes of a copy of a constant: all copies together are bounded."""
        self._budget -= size
        if self._budget < 0:
            raise operator.error("constants must not be used so often that copies exceed 16 files")

    def add(self, tensor):
        """The number of a further tensor, between two nodes of one operator."""
        self.added.append(tensor)
        return len(self.file.tensors) + len(self.added) - 1

    def counts(self, operator, low, high, outputs=1):
        """Check the numbers of inputs and outputs; ``high`` None: no limit."""
        count = len(operator.inputs)
        if count < low or (high is not None and count > high):
            limit = f"{low}..{high}" if high is not None else f"at least {low}"
            raise operator.error(f"inputs must be {limit}, not {count}")
        if outputs is not None and len(operator.outputs) != outputs:
            raise operator.error(f"outputs must be {outputs}, not {len(operator.outputs)}")

    def present(self, operator, index):
        """Whether an optional input is present."""
        return index < len(operator.inputs) and operator.inputs[index] >= 0

    def input(self, operator, index):
        """The tensor of a required input."""
        if not self.present(operator, index):
            raise operator.error(f"input {index} must be present")
        return self.file.tensors[operator.inputs[index]]

    def inputs(self, operator, start=0, stop=None):
        """The tensors of required inputs."""
        places = range(len(operator.inputs))[start:stop]
        return [self.input(operator, index) for index in places]

    def output(self, operator, index=0):
        """The tensor of an output."""
        return self.file.tensors[operator.outputs[index]]

    def constant(self, operator, index, required=True):
        """The value of a constant input; None if it is not required, and absent or computed."""
        if not self.present(operator, index):
            if required:
                raise operator.error(f"input {index} must be present")
            return None
        number = operator.inputs[index]
        if number in self.file.sparse:
            raise Fallback("a constant has a sparse encoding")
        value = self.values.get(number)
        if value is None and required:
            raise Fallback(f"input {index} is not a constant")
        return value

    def converted(self, operator, number, dtype):
        """The constant ``number`` in another type, converted once."""
        key = number, np.dtype(dtype)
        if key not in self._converted:
            self.spend(operator, self.values[number].size * key[1].itemsize)
            self._converted[key] = self.values[number].astype(dtype)
        return self._converted[key]

    def integers(self, operator, index):
        """A constant of integers as a list."""
        value = self.constant(operator, index)
        if value.dtype.kind not in "iu":
            raise operator.error(f"input {index} must be integers, not {value.dtype}")
        if value.size > 64:
            raise operator.error(f"input {index} must have at most 64 numbers, not {value.size}")
        return value.ravel().tolist()

    def broadcast(self, operator, *shapes):
        """The common shape of ``shapes``."""
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            texts = " and ".join(str(shape) for shape in shapes)
            raise operator.error(f"shapes must broadcast, not {texts}") from None

    def expect(self, operator, shape, index=0):
        """Check the shape of an output; sizes of axes that may have any size are replaced."""
        shape, number = tuple(shape), operator.outputs[index]
        given = self.file.tensors[number].shape
        if shape == given:
            return
        pairs = enumerate(zip(shape, given, strict=False))
        wrong = {axis for axis, (size, stored) in pairs if size != stored}
        fits = len(shape) == len(given) and wrong <= self.file.dynamic[number]
        if not fits or math.prod(shape) > ELEMENTS:
            raise operator.error(f"output {index} must be of shape {shape}, not {given}")
        self.file.tensors[number] = dataclasses.replace(self.file.tensors[number], shape=shape)
        self.resized.add(number)

    def expect_size(self, operator, size, shape=None):
        """Check the number of elements of the output.

        If it has axes of any size, ``shape`` replaces the stored one. None: one axis adapts.
        """
        y, dynamic = self.output(operator), self.file.dynamic[operator.outputs[0]]
        if shape is None and math.prod(y.shape) != size and len(dynamic) == 1:
            shape, [axis] = list(y.shape), dynamic
            others = math.prod(shape[:axis]) * math.prod(shape[axis + 1 :])
            shape[axis] = size // others if others else 0
        if shape is not None and dynamic and math.prod(shape) == size:
            self.expect(operator, shape)
        elif math.prod(y.shape) != size:
            raise operator.error(f"the output must have {size} elements, not shape {y.shape}")

    def same_type(self, operator, *tensors):
        """The common type of tensors."""
        kinds = {tensor.dtype for tensor in tensors}
        if len(kinds) != 1:
            names = ", ".join(sorted(str(kind) for kind in kinds))
            raise operator.error(f"types must be equal, not {names}")
        return tensors[0].dtype

    def fold(self, operator, kernel, inputs, attributes):
        """Compute an operator whose inputs are constants; it does not become a node."""
        outputs = kernels.run(kernel, inputs, attributes)
        self.values |= dict(zip(operator.outputs, outputs, strict=True))

    def folded(self, nodes):
        """Whether the nodes of an operator became constants, as all of their inputs are.

        Nodes with another result in another runtime or mode stay, and so do large results.
        """
        values = dict(self.values)
        for node in nodes:
            numbers = {*node.inputs, *node.outputs} - {-1}
            tensors = [[*self.file.tensors, *self.added][number] for number in numbers]
            if not isinstance(node, Host) or node.single or node.kernel in kernels.STATEFUL:
                return False
            if not {*node.inputs} <= {*values, -1}:
                return False
            if node.kernel not in EXACT and any(
                tensor.dtype.kind == "f" or tensor.quantization for tensor in tensors
            ):
                return False
            size = sum(math.prod(t.shape) * t.dtype.itemsize for t in tensors)
            self._folded += size
            if size > FOLDED or self._folded > 64 * FOLDED:
                return False
            given = [None if number < 0 else values[number] for number in node.inputs]
            values |= zip(
                node.outputs, kernels.run(node.kernel, given, node.attributes), strict=True
            )
        self.values = values
        return bool(nodes)

    def host(self, operator, kernel, reason, inputs=None, single=None, **attributes):
        """A node of the host; ``inputs`` are places, all by default; ``single``: `Host.single`."""
        numbers = operator.inputs
        if inputs is not None:
            numbers = tuple(operator.inputs[index] for index in inputs)
        return Host(
            operator=operator.name, name=self.output(operator).name,
            position=(operator.position,), inputs=numbers, outputs=operator.outputs,
            kernel=kernel, attributes=attributes, reason=reason, single=single,
        )
