"""Bytes of an ``.onnx`` file become a checked model: new enough, without dynamic sizes."""

import math
import subprocess
import sys
from pathlib import Path

from weft.hints import to_install
from weft.models.errors import ModelError

__all__ = ["OPSET", "convert", "decoded", "parse", "raw_bytes", "read", "tensors_of", "upgraded"]


# The conversion to a newer operator set, in a process of its own: onnx's converter trusts its
# models, so an invalid one can abort the process, or take much memory.

LIMIT = 120  # seconds
MEMORY = 1 << 32  # bytes of the process, or 16 times the file if that is more


def convert(data: bytes, name: str, opset: int) -> bytes:
    """The file in operator set ``opset``.

    Raises ModelError if it cannot be converted, with the file's name.
    """
    from onnx import onnx_cpp2py_export

    what = f"{name}: cannot be converted to operator set {opset}"
    arguments = onnx_cpp2py_export.__file__, str(opset), str(max(MEMORY, 16 * len(data)))
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", Path(__file__).with_name("converter.py"), *arguments],
            input=data, capture_output=True, timeout=LIMIT,
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"{what}: it takes more than {LIMIT} s") from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        reason = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if done.returncode < 0:
            reason = f"onnx stopped (signal {-done.returncode})"
        raise ModelError(f"{what}: {reason[:300]}")
    return done.stdout


# The checks of a model.

OPSET = 13  # the oldest operator set with scales per channel in QuantizeLinear
MAX_ELEMENTS = 1 << 31  # of one tensor
MAX_ROW = 1 << 20  # of an input of int64 with one dimension
_STANDARD = ("", "ai.onnx")


def read(data: bytes, name: str, shapes=None):
    """The model of a file, checked and converted, and notes about the conversion.

    Parameters
    ----------
    data : bytes
        Content of the file.
    name : str
        Name of the file; for messages.
    shapes : mapping of str to tuple of int, optional
        Shapes of inputs with dynamic dimensions. Without it the first dimension, if it is
        dynamic, becomes 1.

    Returns
    -------
    model : onnx.ModelProto
        Operator set 13 or newer, local functions inlined, inputs of fixed shape.
    notes : list of str

    Raises
    ------
    ModelError
        If the file is damaged or invalid, needs other files, or has a dynamic dimension.
    """
    model = parse(data, name)
    notes = _fix_inputs(model, name, dict(shapes or {}))
    model, note = _checked(model, name)
    return model, [*note, *notes]


def upgraded(data: bytes, name: str):
    """The model of a file, checked and converted as in `read`, with its dynamic dimensions.

    It has an input.
    """
    import onnx

    model = parse(data, name)
    if not all(value.type.tensor_type.HasField("shape") for value in model.graph.output):
        what = "shapes of its outputs are missing"  # which the checker rejects
        model = _guarded(name, what, onnx.shape_inference.infer_shapes, model)
    model = _checked(model, name)[0]
    if not _inputs(model, name):
        raise ModelError(f"{name}: inputs must be at least 1, not 0")
    return model


def _inputs(model, name):
    """The inputs that are no constants; ModelError if one is no tensor."""
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in constants]
    for value in inputs:
        if not value.type.HasField("tensor_type"):
            raise ModelError(f"{name}: input {value.name} must be a tensor")
    return inputs


def _checked(model, name):
    """The model, valid, without local functions, in operator set 13 or newer; and notes."""
    import onnx.inliner

    _guarded(name, "the ONNX checker rejects it", onnx.checker.check_model, _current(model))
    if model.functions:
        model = _guarded(name, "its functions", onnx.inliner.inline_local_functions, model)
    return _converted(model, name)


def _current(model):
    """The model for the checker, which refuses deprecated operators that onnxruntime computes.

    They get a domain that the checker does not know; so it checks all around them.
    """
    import onnx

    if next(_deprecated(model), None) is None:
        return model
    current = type(model)()
    current.CopyFrom(model)
    for node in list(_deprecated(current)):
        node.domain = "deprecated"
    current.opset_import.append(onnx.helper.make_opsetid("deprecated", 1))
    return current


def _deprecated(model):
    """The nodes with operators that the operator set of the model has no longer."""
    import onnx

    standard = ("", "ai.onnx")
    version = max((o.version for o in model.opset_import if o.domain in standard), default=0)
    version = min(max(version, 0), (1 << 31) - 1)  # a wrong one is refused by the checker, too
    for part in _parts(model):
        if isinstance(part, onnx.NodeProto) and part.domain in standard:
            if not isinstance(part.op_type, str):  # bytes that are no UTF-8: the checker refuses it
                continue
            known = onnx.defs.has(part.op_type, version)
            if known and onnx.defs.get_schema(part.op_type, version).deprecated:
                yield part


def parse(data: bytes, name: str):
    """The model of a file, with all its tensors in the file itself and of the size they claim.

    Raises ModelError otherwise; no other file is opened.
    """
    model = decoded(data, name)
    for part in _parts(model):
        _check_values(part, name)
    for tensor in tensors_of(model):
        _check_tensor(tensor, name)
    return model


def decoded(data: bytes, name: str):
    """The model of a file, not yet checked; ModelError if it is none."""
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise ModelError(
            f"{name}: reading ONNX needs the package onnx; {to_install(extra='onnx')}"
        ) from error
    if not data:
        raise ModelError(f"{name}: must be an ONNX model, and the file is empty")
    if data[4:8] == b"TFL3":
        raise ModelError(f"{name}: the file must be an ONNX file, and is a TFLite file")
    what = "must be an ONNX model, but cannot be parsed; the file is cut off or of another kind"
    model = _guarded(name, what, onnx.ModelProto.FromString, data)
    if not model.graph.node:
        raise ModelError(f"{name}: must be an ONNX model with at least one node")
    if not model.graph.output:
        raise ModelError(f"{name}: outputs must be at least 1, not 0")
    return model


def _guarded(name, what, function, *args):
    """``function(*args)``; the libraries report bad models by exceptions of many types."""
    try:
        return function(*args)
    except Exception as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(f"{name}: {what}: {text[:500]}") from error


def _parts(model):
    """All graphs and nodes of a model, in subgraphs and functions too."""
    graphs = [model.graph]
    nodes = [node for function in model.functions for node in function.node]
    while graphs or nodes:
        if graphs:
            yield graphs[-1]
            nodes += graphs.pop().node
        else:
            yield nodes[-1]
            for attribute in nodes.pop().attribute:
                if attribute.HasField("g"):
                    graphs.append(attribute.g)
                graphs += attribute.graphs


def tensors_of(model):
    """All tensors of a model: initializers and attributes, in subgraphs and functions, too."""
    for part in _parts(model):
        yield from _tensors(part)


def _tensors(part):
    """All tensors of a graph or a node itself: initializers and attributes."""
    import onnx

    if isinstance(part, onnx.GraphProto):
        yield from part.initializer
        sparse_tensors = list(part.sparse_initializer)
    else:
        sparse_tensors = []
        for attribute in part.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            sparse_tensors += (attribute.sparse_tensor, *attribute.sparse_tensors)
    for sparse in sparse_tensors:
        yield from (sparse.values, sparse.indices)


def _check_values(part, name):
    """Raise ModelError if a declared shape has a negative size, at which onnx would abort."""
    import onnx

    if not isinstance(part, onnx.GraphProto):
        return
    for value in (*part.input, *part.output, *part.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value < 0:
                raise ModelError(
                    f"{name}: sizes of {value.name} must be 0 or more, not {dim.dim_value}"
                )


def _check_tensor(tensor, name):
    """Raise ModelError for data in another file, or a size that differs from the shape."""
    import onnx

    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        where = next((e.value for e in tensor.external_data if e.key == "location"), "")
        raise ModelError(
            f"{name}: tensor {tensor.name} must be in the model itself, not in the file {where!r}; "
            "load the model by its path, which says the folder, or save it without external data"
        )
    count = math.prod(tensor.dims)
    if any(size < 0 for size in tensor.dims) or count > MAX_ELEMENTS:
        raise ModelError(
            f"{name}: tensor {tensor.name} must have 0..{MAX_ELEMENTS} elements, not shape "
            f"{tuple(tensor.dims)}"
        )
    if not tensor.HasField("raw_data"):
        return  # the checker compares the fields of numbers with the shape
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, TypeError, ValueError):
        raise ModelError(
            f"{name}: tensor {tensor.name} has an unknown data type, {tensor.data_type}"
        ) from None
    needed = raw_bytes(tensor.data_type, count, dtype)
    if len(tensor.raw_data) != needed:
        raise ModelError(
            f"{name}: tensor {tensor.name} of shape {tuple(tensor.dims)} and type {dtype} must "
            f"have {needed} bytes, not {len(tensor.raw_data)}"
        )


def raw_bytes(kind, count, dtype):
    """Bytes of ``count`` numbers of a type of ONNX; ``dtype`` is the one of numpy."""
    import onnx

    name = onnx.TensorProto.DataType.Name(kind)
    packed = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2}
    return -(-count * packed[name] // 8) if name in packed else count * dtype.itemsize


def _converted(model, name):
    """The model in operator set 13 or newer, and a note if it was converted."""
    import onnx

    versions = [o.version for o in model.opset_import if o.domain in _STANDARD]
    if len(versions) > 1:
        raise ModelError(
            f"{name}: must import the standard operators once, not {len(versions)} times"
        )
    if not versions:  # nodes of other operators, which are taken apart into standard ones
        model.opset_import.append(onnx.helper.make_opsetid("", OPSET))
        return model, []
    if versions[0] > (newest := onnx.defs.onnx_opset_version()):
        raise ModelError(
            f"{name}: operator set must be at most {newest}, the newest one of onnx"
            f" {onnx.__version__}, not {versions[0]}; export with an older set, or install a newer"
            " onnx"
        )
    if versions[0] >= OPSET:
        return model, []
    converted = onnx.ModelProto.FromString(convert(model.SerializeToString(), name, OPSET))
    for old, new in zip(model.graph.input, converted.graph.input, strict=False):
        if old.type != new.type:  # a Scan of operator set 8
            raise ModelError(
                f"{name}: cannot be converted to operator set {OPSET}: input {old.name} would get "
                "another shape; export it with a newer operator set"
            )
    return converted, [
        f"converted from operator set {versions[0]} to {OPSET}; operators are counted after it"
    ]


def _fix_inputs(model, name, shapes):
    """Give all inputs a fixed shape, from ``shapes``, or 1 for a dynamic first dimension."""
    inputs = _inputs(model, name)
    unknown = sorted(set(shapes) - {value.name for value in inputs})
    if unknown:
        known = ", ".join(value.name for value in inputs)
        raise ModelError(f"{name}: shapes must name inputs ({known}), not {unknown[0]}")
    sizes, notes = {}, []  # size by the name of a dimension
    for value in inputs:
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            if value.name not in shapes:
                raise ModelError(
                    f"{name}: input {value.name} has no shape; give one in shapes (--shape)"
                )
            tensor.shape.SetInParent()
            for _ in shapes[value.name]:
                tensor.shape.dim.add()
        notes += _fix_shape(name, value.name, tensor.shape.dim, shapes.get(value.name), sizes)
    for value in inputs:
        for place, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value"):
                if dim.dim_param not in sizes:
                    raise ModelError(
                        f"{name}: input {value.name} has the dynamic dimension {place} "
                        f"({dim.dim_param or 'without a name'}); give its shape in shapes (--shape)"
                    )
                dim.dim_value = sizes[dim.dim_param]
        _check_size(name, value)
    for value in model.graph.output:  # inferred again, from the fixed inputs
        value.type.tensor_type.ClearField("shape")
        value.type.tensor_type.shape.SetInParent()
    del model.graph.value_info[:]
    return notes


def _check_size(name, value):
    """Raise ModelError for an input that is too large, or has a size below 1."""
    import onnx

    tensor = value.type.tensor_type
    shape = tuple(dim.dim_value for dim in tensor.shape.dim)
    if min(shape, default=1) < 1:
        raise ModelError(f"{name}: sizes of input {value.name} must be 1 or more, not {min(shape)}")
    # A row of integers may be a shape, and onnx makes as many dimensions as it has numbers.
    row = len(shape) == 1 and tensor.elem_type == onnx.TensorProto.INT64
    limit = MAX_ROW if row else MAX_ELEMENTS
    if math.prod(shape) > limit:
        raise ModelError(
            f"{name}: input {value.name} must have at most {limit} elements, not shape {shape}"
        )


def _fix_shape(name, tensor, dims, shape, sizes):
    """Fix the known dimensions of one shape; return notes about the assumed ones."""
    if shape is not None:
        shape = tuple(shape)
        given = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in dims)
        fits = len(shape) == len(given) and all(
            g in (None, s) for g, s in zip(given, shape, strict=True)
        )
        if not fits:
            raise ModelError(f"{name}: shape of input {tensor} must fit {given}, not {shape}")
        for dim, size in zip(dims, shape, strict=True):
            if dim.dim_param:
                sizes[dim.dim_param] = size
            dim.dim_value = size
    elif dims and not dims[0].HasField("dim_value"):
        if dims[0].dim_param:
            sizes.setdefault(dims[0].dim_param, 1)
        dims[0].dim_value = sizes.get(dims[0].dim_param, 1)
        return [f"the dynamic batch of input {tensor} is {dims[0].dim_value}"]
    return []
