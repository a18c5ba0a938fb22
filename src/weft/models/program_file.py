"""The file of a compiled network: a zip of stored members without code.

``program.json`` has the format, its version, the fields of the Design and its hash, and the
program. Weights and parameters, as the command stream or the memory has them, and sub-models are
the members ``0.bin``, ``1.bin`` ... Members are not compressed, so reading takes no more memory
than the file has bytes.
"""

import io
import json
import zipfile
from typing import TYPE_CHECKING

from weft.config import ConfigError
from weft.design import PerKind
from weft.designs import design_from_dict, to_dict
from weft.files import whole
from weft.models.encoding import Decoder, Encoder
from weft.models.errors import ModelError

if TYPE_CHECKING:
    from weft.models.program import CompiledNetwork

__all__ = ["VERSION", "read_program", "write_program"]

FORMAT = "weft program"
VERSION = 9
_MAIN = "program.json"
_DATE = (1980, 1, 1, 0, 0, 0)  # equal programs give equal files


def write_program(program: "CompiledNetwork", path) -> None:
    """Write a program to a file; an existing file is replaced."""
    design = program.target.config
    encoder = Encoder(type(program), design)
    main = {
        "format": FORMAT, "version": VERSION, "design": to_dict(design), "hash": design.hash,
        "program": encoder.encode(program),
    }
    with whole(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_MAIN, _DATE), json.dumps(main, separators=(",", ":")))
        for number, data in enumerate(encoder.members):
            archive.writestr(zipfile.ZipInfo(f"{number}.bin", _DATE), data)


def read_program(data: bytes, name: str, programs: PerKind[type]) -> "CompiledNetwork":
    """Read a program from the bytes of its file.

    ``name`` is for messages; ``programs`` has the classes of programs.

    Raises ModelError if the file is not a program, is damaged, or has another version.
    """
    try:
        main, members = _members(data, name)
        for key in ("design", "hash", "program"):
            if key not in main:
                raise ModelError(f"{name}: {_MAIN} must have the key {key!r}")
        if not isinstance(main["design"], dict):
            raise ModelError(f"{name}: design must be an object, not {main['design']!r:.40}")
        design = design_from_dict(main["design"])
        if design.hash != main["hash"]:
            raise ModelError(
                f"{name}: the {design.kind} must have the hash {main['hash']}, not {design.hash};"
                " the file is damaged, or of another version: compile the network again"
            )
        kind = programs.of(design)
        program = Decoder(kind, design, members).decode(main["program"])
        if not isinstance(program, kind):
            raise ModelError(f"{name}: program must be a {kind.__name__}")
        if program.target.config is not design:
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
        if main.get("version") != VERSION:
            raise ModelError(
                f"{name}: version must be {VERSION}, not {str(main.get('version'))[:40]};"
                " compile the network again"
            )
        return main, [archive.read(member) for member in names[1:]]
