"""Forms of nodes that exporters write, as the forms that onnxruntime quantizes and fuses."""

import numpy as np

from weft.models.onnx.einsum import product_form
from weft.models.onnx.nodes import captured_names, used_names

__all__ = ["rewrite"]


def rewrite(model) -> None:
    """Change nodes of a float model; all results stay equal.

    - ``Gemm`` without a bias (``beta`` is 0, or the bias is) becomes ``MatMul``, so that an ``Add``
      after it becomes its bias. A bias of one number, or of two dimensions, becomes a row.
    - ``Max`` and ``Min`` with a number become ``Relu`` or ``Clip``.
    - ``Einsum`` of two operands becomes ``MatMul`` between transpositions.
    """
    _Rewriter(model).run()


class _Rewriter:
    """Rewrites the nodes of a model in order."""

    def __init__(self, model):
        self._graph = model.graph
        self._constants = {t.name: t for t in self._graph.initializer}
        self._ranks = _ranks(model)
        self._nodes = []
        self._matrices = set()  # results of Gemm
        self._limits = {}  # of results of a Relu or a Clip: name of its input, low, high

    def run(self):
        """Replace the nodes of the graph."""
        for node in self._graph.node:
            rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
            self._nodes += [node] if rule is None else rule(self, node)
        self._drop_unread()
        nodes = [type(node).FromString(node.SerializeToString()) for node in self._nodes]
        del self._graph.node[:]
        self._graph.node.extend(nodes)
        used = used_names(self._graph)
        kept = [tensor for tensor in self._graph.initializer if tensor.name in used]
        kept = [type(tensor).FromString(tensor.SerializeToString()) for tensor in kept]
        del self._graph.initializer[:]
        self._graph.initializer.extend(kept)

    def _drop_unread(self):
        """Drop the nodes whose results no other node and no output reads."""
        read = {value.name for value in self._graph.output}
        kept = []
        for node in reversed(self._nodes):
            if not read.isdisjoint(node.output):
                kept.append(node)
                read.update(node.input, captured_names(node))
        self._nodes = kept[::-1]

    def _constant(self, name):
        """Value of an initializer, or None."""
        from onnx import numpy_helper

        given = self._constants.get(name)
        return None if given is None else numpy_helper.to_array(given)

    def _new_constant(self, node, value, what):
        """The name of a new initializer."""
        from onnx import numpy_helper

        name = f"{node.output[0]}_{what}"
        self._graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def _gemm(self, node):
        from onnx import helper

        self._matrices.add(node.output[0])
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        bias = self._constant(node.input[2]) if "".join(node.input[2:]) else np.zeros(1)
        if given.get("beta", 1.0) == 0 or (bias is not None and not bias.any()):
            del node.input[2:]
            plain = given.get("alpha", 1.0) == 1 and not given.get("transA") and (
                not given.get("transB")
            )
            if plain:
                return [helper.make_node("MatMul", node.input, node.output, node.name)]
        elif bias is not None and bias.shape[:-1] in ((), (1,)):
            weights = self._constant(node.input[1])
            if weights is not None:
                columns = weights.shape[0 if given.get("transB") else 1]
                row = np.broadcast_to(bias.ravel(), columns)
                node.input[2] = self._new_constant(node, row, "bias")
        return [node]

    def _add(self, node):
        """An Add of a matrix and one row of numbers."""
        for place, name in enumerate(node.input):
            value = self._constant(name)
            if value is not None and value.shape[:-1] == (1,) and (
                node.input[1 - place] in self._matrices
            ):
                node.input[place] = self._new_constant(node, value.ravel(), "row")
        return [node]

    def _limit(self, node):
        """Max or Min with a number, after another one if only this node reads its result."""
        from onnx import helper

        numbers = [self._constant(name) for name in node.input]
        found = [v for v in numbers if v is not None and v.ndim == 0]
        if len(numbers) != 2 or len(found) != 1 or found[0].dtype != np.float32:
            return [node]
        number = float(found[0])
        if np.isnan(number):
            return [node]
        name = node.input[0 if numbers[0] is None else 1]
        low, high = (number, np.inf) if node.op_type == "Max" else (-np.inf, number)
        before = self._limits.get(name)
        if before is not None and node.op_type == "Min" and before[2] == np.inf and (
            before[1] <= number
        ):
            name, low = before[:2]
        self._limits[node.output[0]] = name, low, high
        if (low, high) == (0.0, np.inf):
            return [helper.make_node("Relu", [name], node.output, node.name)]
        limits = [
            self._new_constant(node, np.float32(value), what) if np.isfinite(value) else ""
            for what, value in (("low", low), ("high", high))
        ]
        return [helper.make_node("Clip", [name, *limits], node.output, node.name)]

    def _relu(self, node):
        self._limits[node.output[0]] = node.input[0], 0.0, np.inf
        return [node]

    def _einsum(self, node):
        from onnx import helper

        ranks = [self._ranks.get(name) for name in node.input]
        if len(ranks) != 2 or None in ranks:
            return [node]
        form = product_form(helper.get_attribute_value(node.attribute[0]).decode(), *ranks)
        if form is None or form.k != 1 or form.n != 1 or (form.m != 1 and form.batch):
            return [node]
        if form.m < 1:
            return [node]
        nodes, names = [], []
        for place, axes in enumerate((form.a_axes, form.b_axes)):
            names.append(self._moved(nodes, node, node.input[place], axes, f"operand{place}"))
        moves = form.y_axes != tuple(range(len(form.y_axes)))
        product = f"{node.output[0]}_product" if moves else node.output[0]
        nodes.append(helper.make_node("MatMul", names, [product], node.name))
        if moves:
            nodes.append(helper.make_node(
                "Transpose", [product], node.output, perm=form.y_axes
            ))
        return nodes

    def _moved(self, nodes, node, name, axes, what):
        """The name of a transposed operand."""
        from onnx import helper

        if axes == tuple(range(len(axes))):
            return name
        output = f"{node.output[0]}_{what}"
        nodes.append(helper.make_node("Transpose", [name], [output], perm=axes))
        return output


def _ranks(model):
    """Numbers of dimensions of the tensors of a model, by name, as far as they are known."""
    import onnx

    if not any(node.op_type == "Einsum" for node in model.graph.node):
        return {}
    graph = onnx.shape_inference.infer_shapes(model).graph
    found = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.tensor_type.HasField("shape"):
            found[value.name] = len(value.type.tensor_type.shape.dim)
    return found


_RULES = {
    "Add": _Rewriter._add, "Einsum": _Rewriter._einsum, "Gemm": _Rewriter._gemm,
    "Max": _Rewriter._limit, "Min": _Rewriter._limit, "Relu": _Rewriter._relu,
}
