"""Calibration data: a file of arrays, checked against a model's inputs, as batches for it."""

import zipfile

import numpy as np

from weft.models.errors import ModelError
from weft.models.ir import Tensor

__all__ = ["Feeds", "input_tensors", "read_arrays"]


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
            given = ", ".join(map(repr, arrays))
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
        self.samples, self._batch = next(iter(sizes.values()))

    def __len__(self):
        """Number of batches; a last one that is not full is left out."""
        return self.samples // self._batch

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
    array = array.astype(dtype, copy=False)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ModelError(f"{file}: array {value.name} must have finite numbers only")
    return array, batch
