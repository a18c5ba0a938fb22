"""Quantizes a float model to int8 with onnxruntime: per channel, from calibration data.

A model as a framework exports it becomes ready for the quantizer first.
"""

import contextlib
import logging
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from weft.files import write_bytes
from weft.models.errors import ModelError
from weft.models.ir import Tensor
from weft.models.onnx.einsum import form_of_equation
from weft.models.onnx.nodes import captured_names, is_quantized, used_names
from weft.models.onnx.reading import upgraded

__all__ = ["METHODS", "Feeds", "input_tensors", "prepare", "quantize", "read_arrays", "rewrite"]


def read_arrays(path) -> dict[str, np.ndarray]:
    """The arrays of an ``.npz`` file by name; the array of a ``.npy`` file has the name "".

    Raises ModelError if the file is damaged, or has other objects; OSError if it cannot be read.
    """
    path = str(path)
    try:
        if not zipfile.is_zipfile(path):
            return {"": np.lib.format.open_memmap(path, mode="r")}
        loaded = np.load(path, allow_pickle=False)
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError, NotImplementedError) as error:
        raise ModelError(f"{path}: must be an .npz or .npy file of numbers: {error}") from error


def input_tensors(model: bytes) -> list[Tensor]:
    """The inputs of a model, for one sample: a first axis of any size, and any other one, is 1."""
    import onnx

    graph = onnx.ModelProto.FromString(model).graph
    constants = {tensor.name for tensor in graph.initializer}
    found = []
    for value in graph.input:
        if value.name not in constants:
            kind = value.type.tensor_type
            shape = tuple(dim.dim_value or 1 for dim in kind.shape.dim)
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
            found.append(Tensor(value.name, shape, dtype))
    return found


class Feeds:
    """Samples for a model, one array for each input with the samples along its first axis.

    Parameters
    ----------
    arrays : dict of array by name
        A single array is accepted for a single input, under any name.
    model : bytes
    file : str
        Name of the data's file; for messages.

    Raises
    ------
    ModelError
        If names, shapes or types do not fit the inputs of the model.
    """

    def __init__(self, arrays, model: bytes, file: str):
        import onnx

        graph = onnx.ModelProto.FromString(model).graph
        constants = {tensor.name for tensor in graph.initializer}
        inputs = [value for value in graph.input if value.name not in constants]
        names = [value.name for value in inputs]
        if len(arrays) == len(names) == 1:
            arrays = dict(zip(names, arrays.values(), strict=True))
        if sorted(arrays) != sorted(names):
            given = ", ".join(map(repr, arrays)) or "none"
            raise ModelError(
                f"{file}: arrays must have the names of the inputs, {', '.join(names)}; not {given}"
            )
        self._arrays, sizes = {}, {}
        for value in inputs:
            array, batch = _fitting(arrays[value.name], value, file)
            self._arrays[value.name] = array
            sizes[value.name] = len(array), batch
        if len(set(sizes.values())) > 1:
            raise ModelError(
                f"{file}: all arrays must have the same number of samples, not "
                + ", ".join(f"{count} ({name})" for name, (count, _) in sizes.items())
            )
        count, self._batch = next(iter(sizes.values()))
        self._batches = count // self._batch
        self.samples = self._batches * self._batch  # a last batch that is not full is left out

    def __len__(self):
        """Number of batches."""
        return self._batches

    def batches(self, start=0, end=None):
        """Inputs of one run after another: dicts of array by name."""
        for i in range(start, len(self) if end is None else end):
            part = slice(i * self._batch, (i + 1) * self._batch)
            yield {name: array[part] for name, array in self._arrays.items()}


def _fitting(array, value, file):
    """The array in the type of an input, and the samples of one run."""
    from onnx import helper

    tensor = value.type.tensor_type
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    shape = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    fits = array.ndim == len(shape) > 0 and all(
        size in (None, given) for size, given in zip(shape[1:], array.shape[1:], strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape[1:])
        raise ModelError(
            f"{file}: array {value.name} must have the shape (samples, {wanted}), not {array.shape}"
        )
    batch = shape[0] or 1
    if len(array) < batch:
        raise ModelError(
            f"{file}: array {value.name} must have at least {batch} samples, not {len(array)}"
        )
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ModelError(f"{file}: array {value.name} must be {dtype}, not {array.dtype}")
    with np.errstate(over="ignore"):  # the rule below refuses it
        array = array.astype(dtype, copy=False)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ModelError(f"{file}: array {value.name} must have finite numbers only")
    return array, batch


METHODS = {"min-max": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}
SCALE = "_scale"  # suffix that onnxruntime gives the scale of a tensor
MAX_BATCHES = 16  # of which onnxruntime keeps all activations at a time


def prepare(data: bytes, name: str) -> bytes:
    """The float model of a file, ready to be quantized.

    It has operator set 13 or newer, and the forms of `weft.models.onnx.quantize`. onnxruntime has
    folded its constants, and its batch normalizations into the convolutions before them.

    Raises ModelError if the file is damaged, quantized already, or of another float type.
    """
    from weft.models.onnx.fallback import needs_runtime

    needs_runtime("quantizing")
    from onnxruntime.quantization.shape_inference import quant_pre_process

    model = upgraded(data, name)
    quantized = [node for node in model.graph.node if is_quantized(node.op_type)]
    if quantized:
        node = quantized[0]
        raise ModelError(
            f"{name}: must be a float model, but has the node {node.name or node.output[0]} "
            f"({node.op_type})"
        )
    _require_float32(model, name)
    rewrite(model)
    with _errors_alone(), tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder, "float.onnx"), Path(folder, "prepared.onnx")
        write_bytes(source, model.SerializeToString())  # given a model, it makes external data
        try:
            quant_pre_process(source, path, skip_symbolic_shape=True)
        except Exception as error:  # of many types, from C++
            text = " ".join(str(error).split())[:300]
            raise ModelError(f"{name}: onnxruntime cannot prepare it: {text}") from error
        prepared = path.read_bytes()
    for constant, value in _floats(prepared):
        if np.isnan(value).any():
            raise ModelError(f"{name}: constant {constant} must have no NaN")
    return prepared


def _floats(model):
    """Names and values of the initializers of float32."""
    import onnx

    for tensor in onnx.ModelProto.FromString(model).graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            yield tensor.name, onnx.numpy_helper.to_array(tensor)


def _require_float32(model, name):
    """onnxruntime quantizes tensors of float32 alone, and leaves others as they are."""
    from onnx import TensorProto

    graph = model.graph
    ends = *graph.input, *graph.output
    kinds = {value.name: value.type.tensor_type.elem_type for value in ends}
    kinds |= {value.name: value.data_type for value in graph.initializer}
    for tensor, kind in kinds.items():
        if kind in (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE):
            raise ModelError(
                f"{name}: must be a model of float32, but {tensor} is"
                f" {TensorProto.DataType.Name(kind).lower()}; convert the model to float32 first"
            )


def quantize(
    prepared: bytes, name: str, feeds: Feeds, *, method: str = "min-max", advance=None
) -> bytes:
    """The model with int8 weights per channel and int8 activations, in the form QDQ.

    Parameters
    ----------
    prepared : bytes
        From `prepare`.
    name : str
        Name of the file; for messages.
    feeds : weft.models.onnx.quantize.Feeds
        Inputs from which the ranges of the activations are taken.
    method : str
        How: ``min-max``, ``entropy`` or ``percentile`` (99.999).
    advance : callable, optional
        Called after each batch.

    Raises
    ------
    ModelError
        If onnxruntime cannot quantize the model.

    Source: onnxruntime, ``quantize_static``.
    """
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    if method not in METHODS:
        raise ModelError(f"method must be {', '.join(METHODS)}, not {method!r}")
    stride = next(n for n in range(MAX_BATCHES, 0, -1) if len(feeds) % n == 0)
    with _errors_alone(), tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder, "prepared.onnx"), Path(folder, "quantized.onnx")
        write_bytes(source, prepared)
        try:
            quantize_static(
                source, path, _reader(feeds, advance),
                quant_format=QuantFormat.QDQ, per_channel=True,
                activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
                calibrate_method=CalibrationMethod[METHODS[method]],
                extra_options={
                    "CalibStridedMinMax": stride,
                    "TensorQuantOverrides": {name: [{}] for name in _without_channels(prepared)},
                },
            )
        except Exception as error:  # of many types, from C++
            text = " ".join(str(error).split())[:300]
            raise ModelError(f"{name}: onnxruntime cannot quantize it: {text}") from error
        quantized = path.read_bytes()
    for scale, value in _floats(quantized):
        if scale.endswith(SCALE) and not np.isfinite(value).all():
            raise ModelError(
                f"{name}: tensor {scale.removesuffix(SCALE)} must have finite values, for a finite"
                " scale"
            )
    return quantized


def _without_channels(prepared):
    """Constants of MatMul whose axis 1 is not that of the columns: onnxruntime takes this axis."""
    import onnx

    graph = onnx.ModelProto.FromString(prepared).graph
    ranks = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    return {
        name for node in graph.node if node.op_type == "MatMul"
        for place, name in enumerate(node.input)
        if name in ranks and (place == 0 or ranks[name] != 2)
    }


@contextlib.contextmanager
def _errors_alone():
    """onnxruntime prints errors alone: its warnings are about its own intermediate models."""
    import onnxruntime

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    onnxruntime.set_default_logger_severity(3)
    try:
        with np.errstate(all="ignore"):  # numbers that are not finite are refused at the end
            yield
    finally:
        onnxruntime.set_default_logger_severity(2)
        root.setLevel(level)


def _reader(feeds, advance):
    """The feeds as onnxruntime reads them: a range of them at a time."""
    from onnxruntime.quantization import CalibrationDataReader

    class Samples(CalibrationDataReader):
        """Gives one batch after another."""

        def __init__(self):
            self._batches = iter(())

        def __len__(self):
            return len(feeds)

        def set_range(self, start_index, end_index):
            """Give the batches of a range next."""
            self._batches = iter(feeds.batches(start_index, end_index))

        def get_next(self):
            """The next batch, or None."""
            batch = next(self._batches, None)
            if batch is not None and advance is not None:
                advance()
            return batch

    return Samples()


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
        form = form_of_equation(helper.get_attribute_value(node.attribute[0]).decode(), *ranks)
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
