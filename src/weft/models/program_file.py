"""The file of a compiled network: a zip of stored members without code.

``program.json`` has the format, its version, the fields of the Design and its hash, and the
program. Weights and parameters, as the command stream or the memory has them, and sub-models are
the members ``0.bin``, ``1.bin`` ... Members are not compressed, so reading takes no more memory
than the file has bytes.
"""

import collections.abc
import dataclasses
import functools
import io
import json
import types
import typing
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from ml_dtypes import bfloat16

from weft.commands import JobFlag
from weft.config import Config, ConfigError
from weft.design import Design, PerKind
from weft.designs import design_from_dict, to_dict
from weft.files import written_whole
from weft.hints import visible
from weft.models.errors import ModelError

if TYPE_CHECKING:
    from weft.models.program import CompiledNetwork

__all__ = [
    "LANGUAGE_VERSION", "VERSION", "Decoder", "Encoder", "read_program", "write_language_program",
    "write_program",
]


# Objects of a program as JSON and binary members, and back. Only classes of a program are made:
# those that the fields of the program name, and the fields of its parts.

_DTYPES = {
    np.dtype(name).name: np.dtype(name) for name in (
        bool, "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", bfloat16,
    )
}


@functools.cache
def _classes(program: type) -> dict[str, type]:
    """The dataclasses of a program by their names; a Design is written in its own way."""
    found: dict[str, type] = {}

    def collect(hint):
        if dataclasses.is_dataclass(hint) and hint is not Config and hint.__name__ not in found:
            found[hint.__name__] = hint
            for part in typing.get_type_hints(hint).values():
                collect(part)
        for part in typing.get_args(hint):
            collect(part)

    collect(program)
    return found


class Encoder:
    """Converts objects to JSON values; bytes and arrays go to members.

    ===============================  ===========================================================
    object                           JSON
    ===============================  ===========================================================
    None, bool, int, str             itself
    float                            ``{"float": hexadecimal text}``
    tuple, list                      a list
    mapping of str                   ``{"map": {...}}``
    bytes                            ``{"bytes": member}``
    array                            ``{"array": member, "dtype": name, "shape": [...]}``
    dtype                            ``{"dtype": name}``
    `JobFlag`                        ``{"flags": number}``
    the Design of the program        ``{"design": true}``
    the Config of its array          ``{"array_config": true}``
    object of a class of the program ``{"class": name, "fields": {...}}``
    ===============================  ===========================================================

    Parameters
    ----------
    program : type
        Class of the program.
    design : Design or None
        Of the program.

    Attributes
    ----------
    members : list of bytes
        Contents of the members, equal ones once.
    """

    def __init__(self, program: type, design: Design | None):
        self._classes = _classes(program)
        self._design = design
        self.members: list[bytes] = []
        self._places: dict[bytes, int] = {}

    def encode(self, value):
        """Return the JSON value of an object; TypeError for one of another kind."""
        if isinstance(value, JobFlag):
            return {"flags": int(value)}
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, list | tuple):
            return [self.encode(part) for part in value]
        if isinstance(value, bytes):
            return {"bytes": self._member(value)}
        if isinstance(value, np.ndarray | np.generic):
            array = np.asarray(value)
            little = array.astype(array.dtype.newbyteorder("<"))
            member = self._member(little.tobytes())
            return {"array": member, "dtype": _name(array.dtype), "shape": list(array.shape)}
        if isinstance(value, np.dtype):
            return {"dtype": _name(value)}
        if isinstance(value, Design):
            return {"design" if value == self._design else "array_config": True}
        if isinstance(value, Mapping):
            return {"map": {str(key): self.encode(part) for key, part in value.items()}}
        name = type(value).__name__
        if self._classes.get(name) is not type(value):
            raise TypeError(f"a program must not contain a {name}")
        fields = {f.name: self.encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"class": name, "fields": fields}

    def _member(self, data):
        if data not in self._places:
            self._places[data] = len(self.members)
            self.members.append(data)
        return self._places[data]


class Decoder:
    """Converts JSON values back to objects.

    All errors are ValueError: an unknown class, a field that is missing, unknown or of a wrong
    type, or a member that is missing or of a wrong size.

    Parameters
    ----------
    program : type
        Class of the program.
    design : Design or None
        Of the program.
    members : list of bytes
    """

    def __init__(self, program: type, design: Design | None, members: list[bytes]):
        self._classes = _classes(program)
        self._members = members
        self._design = design

    def decode(self, value):
        """Return the object of a JSON value."""
        if isinstance(value, str):
            return visible(value)
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, list):
            return tuple(self.decode(part) for part in value)
        if not isinstance(value, dict):
            raise ValueError(f"a value must not be a {type(value).__name__}")
        keys = sorted(value)
        if keys == ["array", "dtype", "shape"]:
            return self._array(value)
        if keys == ["class", "fields"]:
            return self._object(value["class"], value["fields"])
        if len(keys) != 1 or keys[0] not in _KINDS:
            raise ValueError(f"an object must have the keys of a known kind, not {keys[:4]}")
        return _KINDS[keys[0]](self, value[keys[0]])

    def _map(self, value):
        if not isinstance(value, dict):
            raise ValueError("a map must be an object")
        return {key: self.decode(part) for key, part in value.items()}

    def _bytes(self, value):
        if not isinstance(value, int) or not 0 <= value < len(self._members):
            raise ValueError(f"a member must be in 0..{len(self._members) - 1}, not {value!r}")
        return self._members[value]

    def _array(self, value):
        data, dtype = self._bytes(value["array"]), _dtype(value["dtype"])
        shape = value["shape"]
        if not isinstance(shape, list) or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise ValueError("a shape must be a list of numbers of 0 or more")
        size = dtype.itemsize
        for axis in shape:
            size *= axis
        if size != len(data):
            raise ValueError(f"an array of {size} bytes must not have {len(data)}")
        return np.frombuffer(data, dtype).reshape(shape)

    def _object(self, name, fields):
        if not isinstance(name, str) or name not in self._classes or not isinstance(fields, dict):
            raise ValueError(
                f"a class must be one of {', '.join(sorted(self._classes))}, not {name!r}"
            )
        hints = typing.get_type_hints(self._classes[name])
        if fields.keys() != hints.keys():
            wrong = sorted(fields.keys() ^ hints.keys())
            raise ValueError(f"{name} has missing or unknown fields: {', '.join(wrong)[:120]}")
        values = {key: self.decode(part) for key, part in fields.items()}
        for key, value in values.items():
            if not _fits(value, hints[key]):
                wanted = getattr(hints[key], "__name__", hints[key])
                raise ValueError(f"{name}.{key} must be {wanted}, not {value!r:.40}")
        return self._classes[name](**values)

    def _flags(self, value):
        if not isinstance(value, int) or not 0 <= value < 1 << 16:
            raise ValueError(f"flags must be in 0..65535, not {value!r}")
        return JobFlag(value)

    def _float(self, value):
        if not isinstance(value, str):
            raise ValueError("a float must be hexadecimal text")
        try:
            return float.fromhex(value)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"a float must be hexadecimal text, not {value[:40]!r}") from error


_KINDS = {
    "map": Decoder._map, "bytes": Decoder._bytes, "flags": Decoder._flags,
    "float": Decoder._float, "dtype": lambda decoder, value: _dtype(value),
    "design": lambda decoder, value: decoder._design,
    "array_config": lambda decoder, value: decoder._design.array,
}


def _name(dtype):
    if dtype.name not in _DTYPES:
        raise TypeError(f"a program must not contain values of {dtype}")
    return dtype.name


def _dtype(name):
    if not isinstance(name, str) or name not in _DTYPES:
        raise ValueError(f"a dtype must be one of {', '.join(_DTYPES)}, not {name!r}")
    return _DTYPES[name]


def _fits(value, hint):
    """Whether a value has the type of a field."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if arguments[-1] is Ellipsis:
            return all(_fits(part, arguments[0]) for part in value)
        return len(value) == len(arguments) and all(map(_fits, value, arguments))
    if origin is collections.abc.Mapping:
        return isinstance(value, dict)
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


# The file.

FORMAT = "weft program"
VERSION = 12
LANGUAGE_VERSION = 2  # of language models, whose format changes at other times
_MAIN = "program.json"
_DATE = (1980, 1, 1, 0, 0, 0)  # equal programs give equal files


def write_program(program: "CompiledNetwork", path) -> None:
    """Write a program to a file; an existing file is replaced."""
    design = program.target.config
    keys = {"version": VERSION, "design": to_dict(design), "hash": design.hash}
    _write(program, path, design, keys)


def write_language_program(program, path) -> None:
    """Write a `weft.models.language.program.LanguageProgram` to a file; it has no Design yet."""
    _write(program, path, None, {"version": LANGUAGE_VERSION, "language": True})


def _write(program, path, design, keys):
    encoder = Encoder(type(program), design)
    main = {"format": FORMAT, **keys, "program": encoder.encode(program)}
    with written_whole(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_MAIN, _DATE), json.dumps(main, separators=(",", ":")))
        for number, data in enumerate(encoder.members):
            archive.writestr(zipfile.ZipInfo(f"{number}.bin", _DATE), data)


def read_program(data: bytes, name: str, programs: PerKind[type], language: type):
    """Read a program from the bytes of its file: a `CompiledNetwork`, or a language model.

    ``name`` is for messages; ``programs`` and ``language`` are the classes of programs.

    Raises ModelError if the file is not a program, is damaged, or has another version.
    """
    try:
        main, members = _members(data, name)
        required = ("program",) if "language" in main else ("design", "hash", "program")
        for key in required:
            if key not in main:
                raise ModelError(f"{name}: {_MAIN} must have the key {key!r}")
        if "language" in main:
            kind, design = language, None
        else:
            design = _design(main, name)
            kind = programs.of(design)
        program = Decoder(kind, design, members).decode(main["program"])
        if not isinstance(program, kind):
            raise ModelError(f"{name}: program must be a {kind.__name__}")
        if design is not None and program.target.config is not design:
            raise ModelError(f"{name}: the target must have the Design of the file")
        program.check()
    except ModelError as error:
        text = str(error)
        raise ModelError(text if text.startswith(name) else f"{name}: {text}") from error
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError) as error:
        raise ModelError(f"{name} must be a whole program file: {error}") from error
    except (
        ArithmeticError, AttributeError, ConfigError, LookupError, RecursionError, TypeError,
        ValueError,
    ) as error:
        first = str(error).partition("\n")[0][:200]
        raise ModelError(f"{name}: {_MAIN} is damaged: {first}") from error
    return program


def _design(main, name):
    """The Design of a file."""
    if not isinstance(main["design"], dict):
        raise ModelError(f"{name}: design must be an object, not {main['design']!r:.40}")
    design = design_from_dict(main["design"])
    if design.hash != main["hash"]:
        raise ModelError(
            f"{name}: the {design.kind} must have the hash {main['hash']}, not {design.hash};"
            " the file is damaged, or of another version: compile the network again"
        )
    return design


def _members(data, name):
    """Return the contents of ``program.json`` and of the binary members."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        names = [_MAIN, *(f"{number}.bin" for number in range(len(entries) - 1))]
        if sorted(entry.filename for entry in entries) != sorted(names):
            foreign = sorted({entry.filename for entry in entries} - {*names})
            raise ModelError(
                f"{name}: members must be {_MAIN}, 0.bin, 1.bin ..., each once;"
                f" others: {[text[:40] for text in foreign[:3]]}"
            )
        total = 0
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
                raise ModelError(f"{name}: member {entry.filename} must be stored, not compressed")
            total += entry.file_size
            if entry.file_size != entry.compress_size or total > len(data):
                raise ModelError(f"{name}: member {entry.filename} must fit the file")
        main = json.loads(archive.read(_MAIN))
        if not isinstance(main, dict) or main.get("format") != FORMAT:
            raise ModelError(f"{name}: format must be {FORMAT!r}")
        version = LANGUAGE_VERSION if "language" in main else VERSION
        if main.get("version") != version:
            raise ModelError(
                f"{name}: version must be {version}, not {str(main.get('version'))[:40]};"
                " compile the network again"
            )
        return main, [archive.read(member) for member in names[1:]]
