"""Tensors in files beside an ``.onnx`` file, as exporters write them, become part of the model.

Only regular files inside the folder of the model are read: a model of somebody else names them.
"""

import math
import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath

from weft.models.errors import ModelError
from weft.models.onnx.reading import decoded, raw_bytes, tensors_of

__all__ = ["self_contained"]

MAX_BYTES = (1 << 31) - 1  # of a serialized model
DIGITS = 18  # of an offset or a length


def self_contained(data: bytes, name: str, folder: Path) -> bytes:
    """The bytes of a model with all its tensors in itself; ``data`` if they are already.

    Parameters
    ----------
    data : bytes
        Content of the file.
    name : str
        Name of the file; for messages.
    folder : Path
        Folder of the file.

    Raises
    ------
    ModelError
        If a tensor is in a file outside the folder, in one that is missing, too short or not a
        regular file, or if the model would have 2 GiB or more.
    """
    if b"location" not in data:  # a key that each such tensor must have
        return data
    import onnx

    model = decoded(data, name)
    outside = [t for t in tensors_of(model)
               if t.data_location == onnx.TensorProto.EXTERNAL or t.external_data]
    if not outside:
        return data
    places = [_place(tensor, name, folder) for tensor in outside]
    total = len(data) + sum(size for *_, size in places)
    if total > MAX_BYTES:
        raise ModelError(
            f"{name}: the model and its data in other files must have at most {MAX_BYTES:,} bytes, "
            f"not {total:,}"
        )
    for tensor, (path, offset, size) in zip(outside, places, strict=True):
        values = _read(path, offset, size, _where(tensor, name))
        tensor.ClearField("data_location")
        del tensor.external_data[:]
        tensor.raw_data = values
    return model.SerializeToString()


def _where(tensor, name):
    return f"{name}: tensor {tensor.name}"


def _place(tensor, name, folder):
    """(file, offset, bytes) of the data of a tensor, checked."""
    where, given = _where(tensor, name), {}
    for entry in tensor.external_data:
        if entry.key in given:
            raise ModelError(f"{where}: its data must have one {entry.key}, not two")
        given[entry.key] = entry.value
    size = _size(tensor, where)
    path = _inside(given.get("location", ""), folder, where)
    offset = _number(given.get("offset", "0"), "offset", where)
    length = _number(given.get("length", str(size)), "length", where)
    if length != size:
        raise ModelError(
            f"{where}: its data in {given['location']!r} must have {size} bytes, as its shape says,"
            f" not length {length}"
        )
    end, actual = offset + size, path.stat().st_size
    if end > actual:
        raise ModelError(
            f"{where}: its data file {given['location']!r} must have at least {end} bytes, not "
            f"{actual}"
        )
    return path, offset, size


def _size(tensor, where):
    """Bytes of a tensor, by its shape and type."""
    import onnx

    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, TypeError, ValueError):
        dtype = None
    if dtype is None or dtype.kind == "O":
        raise ModelError(f"{where}: data in another file must be numbers")
    if any(size < 0 for size in tensor.dims):
        raise ModelError(f"{where}: sizes must be 0 or more, not {tuple(tensor.dims)}")
    return raw_bytes(tensor.data_type, math.prod(tensor.dims), dtype)


def _number(text, what, where):
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS):
        raise ModelError(
            f"{where}: {what} of its data must be a number of 1 to {DIGITS} digits, not "
            f"{text[:40]!r}"
        )
    return int(text)


def _inside(location, folder, where):
    """The regular file at a location inside the folder; links are followed."""
    kinds = PurePosixPath(location), PureWindowsPath(location)
    outside = any(p.is_absolute() or p.drive or p.root or ".." in p.parts for p in kinds)
    if not location or outside:
        raise ModelError(
            f"{where}: location of its data must be a path inside the folder of the model, not "
            f"{location[:200]!r}"
        )
    what = f"{where}: its data file {location[:200]!r}"
    try:
        path, root = folder.joinpath(location).resolve(strict=True), folder.resolve(strict=True)
        kind = path.stat().st_mode
    except FileNotFoundError:
        raise ModelError(f"{what} must be beside the model, but does not exist") from None
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links; a name with a NUL
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{what} cannot be read: {reason}") from error
    if not path.is_relative_to(root):
        raise ModelError(
            f"{what} must be in the folder of the model, but is a link that leads out of it"
        )
    if not stat.S_ISREG(kind):
        raise ModelError(f"{what} must be a regular file")
    return path


def _read(path, offset, size, where):
    """Bytes of a file. It may have changed since it was checked, but nothing waits for it."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise ModelError(f"{where}: its data file {path.name!r} must be a regular file")
            file.seek(offset)
            data = file.read(size)
    except OSError as error:
        raise ModelError(
            f"{where}: its data file {path.name!r} cannot be read: {error.strerror}"
        ) from error
    if len(data) != size:
        raise ModelError(f"{where}: its data file {path.name!r} has become shorter")
    return data
