"""The file of a compiled network: a zip of stored members without code.

``program.json`` has the format, its version, the Config with its hash, and the program; for a core
for networks also the other fields of the ChipConfig, and its hash. Weights and parameters, as the
command stream or the memory has them, and sub-models are the members ``0.bin``, ``1.bin`` ...
Members are not compressed, so reading takes no more memory than the file has bytes.
"""

import dataclasses
import io
import json
import zipfile

from weft.config import Config, ConfigError
from weft.files import whole
from weft.models.encoding import Decoder, Encoder
from weft.models.errors import ModelError
from weft.models.network_core.program import ChipProgram
from weft.models.program import CompiledNetwork, Program
from weft.models.program_check import check
from weft.network_core.config import ChipConfig

__all__ = ["VERSION", "read_program", "write_program"]

FORMAT = "weft program"
VERSION = 6
_MAIN = "program.json"
_DATE = (1980, 1, 1, 0, 0, 0)  # equal programs give equal files


def write_program(program: CompiledNetwork, path) -> None:
    """Write a program to a file; an existing file is replaced."""
    encoder, target = Encoder(), program.target
    main = {
        "format": FORMAT, "version": VERSION, "config_hash": target.config.hash,
        "config": dataclasses.asdict(target.config), "program": encoder.encode(program),
    }
    if target.chip is not None:
        fields = dataclasses.asdict(target.chip)
        del fields["core"]
        main |= {"chip_hash": target.chip.hash, "chip": fields}
    with whole(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_MAIN, _DATE), json.dumps(main, separators=(",", ":")))
        for number, data in enumerate(encoder.members):
            archive.writestr(zipfile.ZipInfo(f"{number}.bin", _DATE), data)


def read_program(data: bytes, name: str) -> Program | ChipProgram:
    """Read a program from the bytes of its file; ``name`` is for messages.

    Raises ModelError if the file is not a program, is damaged, or has another version.
    """
    try:
        main, members = _members(data, name)
        for key in ("config", "config_hash", "program", *(["chip_hash"] if "chip" in main else [])):
            if key not in main:
                raise ModelError(f"{name}: {_MAIN} must have the key {key!r}")
        if not isinstance(main["config"], dict):
            raise ModelError(f"{name}: config must be an object, not {main['config']!r:.40}")
        config = Config.from_dict(main["config"])
        if config.hash != main["config_hash"]:
            raise ModelError(
                f"{name}: the Config must have the hash {main['config_hash']}, not {config.hash}"
            )
        chip = _chip(main, config, name)
        program = Decoder(members, config, chip).decode(main["program"])
        kind = Program if chip is None else ChipProgram
        if not isinstance(program, kind):
            raise ModelError(f"{name}: program must be a {kind.__name__}")
        if program.target.chip is not chip:
            raise ModelError(f"{name}: the target must have the ChipConfig of the file")
        check(program)
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


def _chip(main, config, name):
    """Return the ChipConfig of ``program.json``; None if it has none."""
    if "chip" not in main:
        return None
    if not isinstance(main["chip"], dict):
        raise ModelError(f"{name}: chip must be an object, not {main['chip']!r:.40}")
    chip = ChipConfig.from_dict(config, main["chip"])
    if chip.hash != main["chip_hash"]:
        raise ModelError(
            f"{name}: the ChipConfig must have the hash {main['chip_hash']}, not {chip.hash}"
        )
    return chip


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
