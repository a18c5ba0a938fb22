"""Graphs of ATen operators with their products on an accelerator."""

import re
import threading
from collections.abc import Callable
from pathlib import PurePath
from typing import NoReturn

import numpy as np
import torch
from ml_dtypes import bfloat16
from torch._prims_common import suggest_memory_format
from torch.fx import GraphModule
from torch.utils.flop_counter import flop_registry

from weft.offload import NO_PRODUCT, Operator, Products, StaticWeights, Window
from weft.offload.subnormals import KeptSubnormals
from weft.torch.convolutions import each, input_gradient, weight_gradient, weight_of
from weft.torch.products import PRODUCTS
from weft.torch.quantized import Int8Core, floats, is_quantized, operands

__all__ = ["on_accelerator"]

aten = torch.ops.aten
_INSIDE = "PyTorch computes the products inside it"
_FAST_PATH = "; torch.backends.mha.set_fastpath_enabled(False) divides it"
# Operators of PyTorch with products inside, beside those whose operations its counter knows.
_FUSED = re.compile(
    r"lstm|gru|rnn|attention|transformer_encoder|trilinear|cdist|euclidean_dist|mm$|mm_|mv$|"
    r"linalg_(?!vector_norm|diagonal|cross)|cholesky|lu_solve|triangular_solve|geqrf|or[gm]qr"
)


class Refused(Exception):
    """The core cannot compute a product; PyTorch does."""


class Part:
    """A product of an operator in a graph: a ``core`` for the functions of `weft.torch.products`.

    Parameters
    ----------
    products : Products
    kind, name : str
        Of the `Operator`.
    out : torch.dtype
        Of the operator's result.
    static : (bool, bool)
        Whether each operand depends on parameters alone.
    reason : str
        Why the core cannot compute it, if this is known before it is called.

    Attributes
    ----------
    before : list of Operator
        Operators that PyTorch computes before this one; the record gets them at the first call.
    """

    def __init__(
        self, products: Products, kind: str, name: str, out: torch.dtype,
        static: tuple[bool, bool], reason: str = "",
    ):
        self._products = products
        self._kind, self._name, self._out = kind, name, out
        self._static = static
        self._reason = reason
        self.before: list[Operator] = []
        self._found: dict[tuple, Operator] = {}
        self._caches: dict[int, StaticWeights] = {}
        self._lock = threading.Lock()

    def matmul(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return the products [count, M, N] of A [count, M, K] and B [count, K, N]."""
        operator = self._operator([(*a.shape, b.shape[2])], a, b)
        products = self._products
        with KeptSubnormals():
            x = self._weights(0, _array(a), products.static_rows)
            w = self._weights(1, _array(b), products.static_columns)
            y = products.matmul(operator, x, w)
        return torch.from_numpy(y).to(a.device)

    def convolution(self, x: torch.Tensor, w: torch.Tensor, window: Window) -> torch.Tensor:
        """Return the convolution [N, positions..., O] of x [N, positions..., C] with a kernel."""
        operator = self._operator(window.products(x.shape, w.shape), x, w)
        with KeptSubnormals():
            kernel = self._weights(1, _array(w), self._products.static_kernel)
            y = self._products.convolution(operator, _array(x), kernel, window)
        return torch.from_numpy(y).to(x.device)

    def refuse(self, reason: str, shapes: tuple[tuple[int, int, int, int], ...]) -> NoReturn:
        """Record why PyTorch computes the operator; raise Refused."""
        self._noted((shapes, reason), lambda: reason)
        raise Refused

    def _operator(self, shapes, a, b):
        """Return the operator for some products; Refused if PyTorch must compute it."""
        shapes = tuple(tuple(int(size) for size in shape) for shape in shapes)
        is_meta = a.is_meta or b.is_meta
        operator = self._noted(
            (shapes, a.dtype, b.dtype, is_meta),
            lambda: self._refusal(shapes, a.dtype, b.dtype, is_meta),
        )
        if operator.reason:
            raise Refused
        return operator

    def _noted(self, key, reason):
        """Return the operator for a key, which begins with products; the record has it."""
        operator = self._found.get(key)
        if operator is None:
            operator = Operator(self._kind, self._name, key[0], reason())
            with self._lock:
                if key not in self._found:
                    self._products.record.found([*self.before, operator])
                    self.before = []
                    self._found[key] = operator
        return operator

    def _refusal(self, shapes, a, b, is_meta):
        if self._reason:
            return self._reason
        if is_meta:
            return "tensors of the device meta have no values"
        types = (a, b, self._out)
        known = [_NUMPY.get(kind) for kind in types]
        for kind, dtype in zip(types, known, strict=True):
            if dtype is None:
                return f"the core has no type {str(kind).removeprefix('torch.')}"
        return self._products.refusal(*known, shapes)

    def _weights(self, side, array, make: Callable[[], StaticWeights]):
        """Return an operand; parameters for an int8 core are converted once.

        Those of int8 stay in the core's buffer like converted ones, as operand B.
        """
        products = self._products
        ready = side == 0 and array.dtype == np.int8
        if not self._static[side] or not products.quantizes or ready:
            return array
        with self._lock:
            cache = self._caches.setdefault(side, make())
        return cache(array)


class Site(torch.nn.Module):
    """An operator with one product, in the place of its node."""

    def __init__(self, target: Callable, part: Part, out: torch.Tensor):
        super().__init__()
        self._target, self._part = target, part
        self._compute = PRODUCTS[target][0]
        self._result = _result_like(out)

    @property
    def before(self) -> list[Operator]:
        return self._part.before

    def forward(self, *args, **kwargs):
        try:
            return self._result(self._compute(self._part, *args, **kwargs))
        except Refused:
            return self._target(*args, **kwargs)


class QuantizedSite(Site):
    """An operator with one product of int8 values."""

    def __init__(self, target: Callable, part: Part, out: torch.Tensor, axis: int | None):
        super().__init__(target, part, out)
        self._axes = None, axis  # of the channels that have a scale

    def forward(self, scales, *args, **kwargs):
        try:
            core = Int8Core(self._part, scales)
            return self._result(self._compute(core, *args, **kwargs))
        except Refused:
            given = list(args)
            for side, place in enumerate(PRODUCTS[self._target][1]):
                scale, zero = scales[2 * side : 2 * side + 2]
                given[place] = floats(args[place], scale, zero, self._axes[side])
            return self._target(*given, **kwargs)


class GradientSite(torch.nn.Module):
    """``convolution_backward``: two products, in the place of its node."""

    def __init__(self, target: Callable, parts: tuple[Part, Part], outs):
        super().__init__()
        self._target, self._parts = target, parts
        self._results = [out if out is None else _result_like(out) for out in outs]

    @property
    def before(self) -> list[Operator]:
        return next(
            part for part, result in zip(self._parts, self._results, strict=False) if result
        ).before

    def forward(
        self, dy, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
        wanted,
    ):
        given = [bias_sizes, stride, padding, dilation, transposed, output_padding, groups]
        stride, padding, dilation = (each(values, x) for values in (stride, padding, dilation))

        def in_pytorch(side):
            only = [n == side for n in range(3)]
            return self._target(dy, x, w, *given, only)[side]

        def of_input():
            window, kernel = input_gradient(
                dy, x, w, stride, padding, dilation, transposed, groups
            )
            y = self._parts[0].convolution(dy.movedim(1, -1), kernel, window)
            return y.movedim(-1, 1)

        def of_weight():
            map_, kernel, window = weight_gradient(
                dy, x, w, stride, padding, dilation, transposed, groups
            )
            return weight_of(self._parts[1].convolution(map_, kernel, window))

        found = []
        for side, compute in enumerate((of_input, of_weight)):
            try:
                found.append(self._results[side](compute()) if wanted[side] else None)
            except Refused:
                found.append(in_pytorch(side))
        return *found, in_pytorch(2) if wanted[2] else None


def on_accelerator(
    graph: GraphModule, products: Products, static: frozenset[str], backward: bool = False
) -> set[str]:
    """Let the products of a graph run on an accelerator.

    Parameters
    ----------
    graph : GraphModule
        Of ATen operators; its nodes are changed.
    products : Products
    static : set of str
        Names of inputs that depend on parameters alone.
    backward : bool
        Whether the graph has gradients.

    Returns
    -------
    set of str
        Names of all its values that depend on parameters alone.
    """
    found = _Rewriting(graph, products, static, backward)
    found.run()
    return found.static


class _Rewriting:
    """Puts sites into the places of the products of a graph."""

    def __init__(self, graph, products, static, backward):
        self._graph, self._products = graph, products
        self._backward = backward
        self._quantized = products.quantizes and is_quantized(graph.graph)
        self.static = set(static)
        self._sites = 0

    def run(self):
        for inner in self._graph.children():
            if isinstance(inner, GraphModule):  # a branch of a condition, or the body of a loop
                on_accelerator(inner, self._products, frozenset(), self._backward)
        for node in list(self._graph.graph.nodes):
            if node.op != "call_function":
                continue
            inputs = node.all_input_nodes
            if inputs and all(value.name in self.static for value in inputs):
                self.static.add(node.name)
            if node.target in PRODUCTS:
                self._product(node)
            elif node.target is aten.convolution_backward.default and any(node.args[-1][:2]):
                self._gradients(node)
        # What made floats of int8 values has no reader any more.
        self._graph.graph.eliminate_dead_code()
        self._record()
        self._graph.recompile()

    def _record(self):
        """Give each site the operators before it; those after the last one are in the record."""
        before: list[Operator] = []
        for node in self._graph.graph.nodes:
            if node.op == "call_module":
                self._graph.get_submodule(node.target).before.extend(before)
                before.clear()
            elif node.op == "call_function":
                before.extend(_kept(node, self._backward))
        self._products.record.found(before)

    def _product(self, node):
        target, places = node.target, PRODUCTS[node.target][1]
        pair = operands(node, places) if self._quantized and not _is_exact(node) else None
        reason = pair if isinstance(pair, str) else ""
        out = node.meta["val"]
        static = tuple(node.args[place].name in self.static for place in places)
        part = Part(
            self._products, target.overloadpacket.__name__, _place(node, self._backward),
            torch.int32 if isinstance(pair, tuple) else out.dtype, static, reason,
        )
        if not isinstance(pair, tuple):
            self._replace(node, Site(target, part, out), node.args)
            return
        a, b = pair
        args = list(node.args)
        for place, operand in zip(places, pair, strict=True):
            args[place] = operand.values
        scales = (a.scale, a.zero, b.scale, b.zero)
        self._replace(node, QuantizedSite(target, part, out, b.axis), (scales, *args))

    def _gradients(self, node):
        kind, place = node.target.overloadpacket.__name__, _place(node, False)
        dy, x, w = node.args[:3]
        outs = node.meta["val"]
        kinds = [node.args[side].meta["val"].dtype for side in (1, 2)]
        static = [value.name in self.static for value in (dy, x, w)]
        parts = tuple(
            Part(self._products, kind, f"{name} gradient of {place}", dtype, flags)
            for name, dtype, flags in (
                ("input", kinds[0], (static[0], static[2])),
                ("weight", kinds[1], (static[1], static[0])),
            )
        )
        self._replace(node, GradientSite(node.target, parts, outs), node.args)

    def _replace(self, node, site, args):
        """Put a call of a site into the place of a node."""
        name = f"weft_{self._sites}"
        self._sites += 1
        self._graph.add_submodule(name, site)
        with self._graph.graph.inserting_before(node):
            new = self._graph.graph.call_module(name, args, node.kwargs)
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
        self._graph.graph.erase_node(node)
        if node.name in self.static:
            self.static.add(new.name)


def _kept(node, backward):
    """The operator that PyTorch computes at a node, if it is one."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        packet = target.overloadpacket
        kind = packet.__name__
        # A gradient of a convolution without a site is that of its bias.
        inside = target is not aten.convolution_backward.default and (
            packet in flop_registry or _FUSED.search(kind)
        )
    elif isinstance(target, torch._ops.HigherOrderOperator):
        kind, inside = target.__name__, False
    else:
        return  # Python, such as a size or a part of a result
    if inside:
        fast = kind in ("_transformer_encoder_layer_fwd", "_native_multi_head_attention")
        reason = _INSIDE + _FAST_PATH if fast else _INSIDE
        yield Operator(kind, _place(node, backward), reason=reason)
    else:
        yield Operator(kind, reason=NO_PRODUCT)


def _place(node, backward):
    """Where an operator is: its module, and the line of the source."""
    meta = node.meta
    modules = list((meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack") or {}).values())
    # L['self']._modules['layers'][0] -> layers.0
    words = re.findall(r"\w+", modules[-1][0]) if modules else []
    if words[:1] == ["L"]:
        words = words[2:]
    module = ".".join(word for word in words if word not in ("_modules", "slice"))
    if modules and not module:
        module = getattr(modules[-1][1], "__name__", "")  # the whole model: its class
    lines = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', meta.get("stack_trace") or "")
    parts = [module]
    if lines:
        file, line, function = lines[-1]
        parts.append(f"{PurePath(file).name}:{line} {function}")
    place = ", ".join(part for part in parts if part)
    return f"backward of {place}" if backward and place else place


def _is_exact(node):
    """Whether a product is one of integers."""
    return node.target is aten._int_mm.default


def _result_like(out):
    """What gives a result the type and the layout of ``out``, which the graph was traced with."""
    layout, dtype = suggest_memory_format(out), out.dtype
    return lambda y: y.to(dtype).contiguous(memory_format=layout)


_NUMPY = {
    torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64),
    torch.float16: np.dtype(np.float16), torch.bfloat16: np.dtype(bfloat16),
    torch.int8: np.dtype(np.int8), torch.uint8: np.dtype(np.uint8),
    torch.int16: np.dtype(np.int16), torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64), torch.complex64: np.dtype(np.complex64),
    torch.complex128: np.dtype(np.complex128), torch.bool: np.dtype(bool),
}


def _array(tensor):
    """A tensor as an array; bfloat16 is not known to PyTorch's own conversion."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(bfloat16)
    return tensor.numpy()
