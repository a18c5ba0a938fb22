"""The files of a project: a design with what its template needs, a test, and five verbs.

`create` writes them, and `update` brings them to a newer Weft.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from importlib import metadata, resources
from pathlib import Path

from weft.config import Config
from weft.designs import to_toml
from weft.files import write_bytes
from weft.kit.folder import manifest

__all__ = [
    "MANIFEST", "TEMPLATES", "Facts", "ProjectError", "check_folder", "create", "generated_files",
    "update", "version",
]


MANIFEST = "project.json"
_BOARD = '''\
"""The board: its pins and its clock; the design is in design.toml."""

from pathlib import Path

{imports}

from weft.boards.board import Board
from weft.designs import design_from_toml


class Pins({platform}):
    """The pins. A list ``resources`` here replaces the one of the platform."""


BOARD = Board(
    platform=Pins, config=design_from_toml(Path(__file__).with_name("design.toml")),
{fields}
)
'''
_README = """\
# {title}

{what} on the board {board}, made with Weft {version}.
The design is in `design.toml`, the pins are in `board.py`. Five verbs:

- `make lint` checks the design, and `make sim` tests it against the golden model;
- `make build` makes the bitstream, and `make program` loads it; `weft devices` finds the board;
- `make run` runs `run.py` on a simulated board, `make run ON=/dev/ttyUSB1` on a real one.

`weft new --update` brings the files that you have not changed to a newer Weft.
"""
_IP_README = """\
# {title}

An IP core in your own Verilog, `top.v`, with a product core of Weft {version}. The parameters of
the product core are in `design.toml`; its kit, with data sheet and driver, is made into `core`.

- `make lint` checks `top.v`, and `make sim` tests it with `test_top.py`;
- `make build` synthesizes it with Yosys; `make program` says how to come to a board;
- `make run` runs `program.py` on the simulated `top.v`.

`weft new --update` brings the files that you have not changed to a newer Weft.
"""
_LITEX_README = """\
# {title}

A SoC by LiteX: a RISC-V processor with a product core of Weft {version}. The SoC is in `soc.py`,
the parameters of the core are in `design.toml`; its kit is made into `core`. Five verbs:

- `make lint` checks the SoC and the programs, and `make sim` runs `test.c` on the simulated SoC;
- `make build` makes the bitstream of a ULX3S-85F, and `make program` loads it;
- `make run` runs `main.c` on the simulated SoC, `make run ON=/dev/ttyUSB0` on the board.

`weft new --update` brings the files that you have not changed to a newer Weft.
"""
_IGNORED = "out/\n__pycache__/\n"
# The designs of projects without a board of the catalog: small, so that they simulate fast.
_DESIGNS = {
    "ip": Config(rows=4, cols=4, depth=2),
    "litex": Config(rows=4, cols=4, depth=2, target="ecp5"),
}


@dataclasses.dataclass(frozen=True)
class Facts:
    """What a project was made for; its manifest has these, and the digests of its files.

    Attributes
    ----------
    title : str
        Name of its folder when it was made.
    board : str
        "" if the template has no board.
    purpose : str
        The network core of the board; "" for the product core.
    network : str
        Name of the network's file in the project; "" without one.
    template : str
        One of `TEMPLATES`.
    """

    title: str
    board: str = ""
    purpose: str = ""
    network: str = ""
    template: str = "board"


def version() -> str:
    """The version of the installed Weft."""
    return metadata.version("weft")


def check_folder(folder: Path) -> None:
    """Raise OSError unless a project can be made in ``folder``: new, or an empty folder."""
    if folder.exists() and not folder.is_dir():
        raise OSError(f"folder must be new or empty, and {folder} is a file")
    if folder.exists() and any(folder.iterdir()):
        hint = "; weft new --update brings a project to this Weft"
        kind = "a project" if (folder / MANIFEST).is_file() else "a folder with files"
        raise OSError(
            f"folder must be new or empty, and {folder} is {kind}"
            f"{hint if kind == 'a project' else ''}"
        )


def generated_files(facts: Facts) -> dict[str, bytes]:
    """The files that `weft.project.create` may replace: name -> contents.

    Raises BoardError if this Weft does not know the board.
    """
    files = {
        "Makefile": _text(f"{facts.template}/Makefile"),
        ".github/workflows/weft.yml": _text(f"{facts.template}/weft.yml"),
        **TEMPLATES[facts.template](facts),
    }
    if facts.board and _board(facts).link != "serial":
        files = {name: _on_usb(text) for name, text in files.items()}
    return {name: text.encode() for name, text in files.items()}


def _on_usb(text):
    """A text for a board whose link is USB, where ``usb`` names its port."""
    port, usb = "/dev/ttyUSB1", "usb"
    return text.replace(f"{port}  ", f"{usb.ljust(len(port))}  ").replace(port, usb)


def _board_files(facts):
    run = "network" if facts.network else "product"
    test = "network" if facts.purpose else "product"
    return {
        "board.py": _board_file(facts), "README.md": _readme(facts), ".gitignore": _IGNORED,
        "run.py": _text(f"board/run_{run}.py"), "test_design.py": _text(f"board/test_{test}.py"),
        "waves.gtkw": _text(f"board/{test}.gtkw"),
    }


def _ip_files(facts):
    names = "top.v", "simulate.py", "test_top.py", "program.py"
    return {
        "README.md": _IP_README.format(title=facts.title, version=version()),
        ".gitignore": f"core/\n{_IGNORED}", **{name: _text(f"ip/{name}") for name in names},
    }


def _litex_files(facts):
    names = "soc.py", "simulate.py", "main.cpp", "main.c", "test.c", "soc.h", "firmware.mk"
    return {
        "README.md": _LITEX_README.format(title=facts.title, version=version()),
        ".gitignore": f"core/\n{_IGNORED}", **{name: _text(f"litex/{name}") for name in names},
    }


# What a project is made from: template -> the files that only it has.
TEMPLATES = {"board": _board_files, "ip": _ip_files, "litex": _litex_files}


def create(folder: Path, facts: Facts, network: bytes | None) -> list[str]:
    """Make a project; return the names of its files."""
    check_folder(folder)
    files = generated_files(facts)
    design = _board(facts).config if facts.board else _DESIGNS[facts.template]
    files["design.toml"] = to_toml(design, chosen=True).encode()
    digested = manifest(files, weft=version(), **dataclasses.asdict(facts))
    files[MANIFEST] = digested
    if network is not None:
        files[facts.network] = network
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        for name, data in files.items():
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            write_bytes(part / name, data)
        # An empty folder stays the same folder, because a shell may be in it.
        folder.mkdir(exist_ok=True)
        for entry in part.iterdir():
            entry.rename(folder / entry.name)
    except OSError as error:
        if error.filename and str(error.filename).startswith(str(part)):
            error.filename = str(folder) + str(error.filename)[len(str(part)):]
        raise
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(part)
    return sorted(files)


def _text(name):
    return resources.files("weft.project.files").joinpath(name).read_text(encoding="utf-8")


def _board(facts):
    from weft.boards.catalog import find

    board = find(facts.board)
    return board.built_for(facts.purpose) if facts.purpose else board


def _board_file(facts):
    board = _board(facts)
    left_out = "platform", "config", "networks", "languages"
    values = {
        f.name: getattr(board, f.name) for f in dataclasses.fields(board)
        if f.name not in left_out and getattr(board, f.name) != _default(f)
    }
    names = {}  # of what is imported, by the module
    used = (kind for value in (board.platform, *values.values()) for kind in _classes(value))
    for each in dict.fromkeys(used):
        names.setdefault(each.__module__, []).append(each.__name__)
    return _BOARD.format(
        platform=board.platform.__name__,
        imports="\n".join(f"from {module} import {', '.join(names[module])}" for module in names),
        fields="\n".join(
            f"    {name}={value.__name__ if isinstance(value, type) else repr(value)},"
            for name, value in values.items()
        ),
    )


def _classes(value):
    """The classes that the text of a value names: itself, or those of a dataclass in it."""
    if isinstance(value, type):
        yield value
    elif dataclasses.is_dataclass(value):
        yield type(value)
        for f in dataclasses.fields(value):
            yield from _classes(getattr(value, f.name))


def _default(f):
    missing = dataclasses.MISSING
    return f.default if f.default_factory is missing else f.default_factory()


def _readme(facts):
    core = f"A network core ({facts.purpose})" if facts.purpose else "A product core"
    what = f"{core} for `{facts.network}`" if facts.network else core
    return _README.format(title=facts.title, what=what, board=facts.board, version=version())


class ProjectError(ValueError):
    """The folder is no project, or one of a newer Weft."""


def update(folder: Path) -> dict[str, list[str]]:
    """Replace the generated files that were not changed; return names by what was done.

    The keys are ``updated``, ``added``, ``kept`` (the user changed the file, and Weft has another
    one now) and ``deleted`` (the user deleted it). The design and the network are the user's: they
    are never replaced.

    Raises ProjectError for a folder without a valid manifest, or of a newer Weft.
    """
    old = _read(folder)
    digests = old["files"]
    done: dict[str, list[str]] = {"updated": [], "added": [], "kept": [], "deleted": []}
    new = {}
    for name, data in generated_files(_facts(old)).items():
        path, known, wanted = folder / name, digests.get(name), hashlib.sha256(data).hexdigest()
        found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        if found == wanted:
            digests[name] = wanted
        elif found is None and known is not None:
            done["deleted"].append(name)
        elif found is not None and found != known:
            done["kept"].append(name)
        else:
            done["added" if found is None else "updated"].append(name)
            digests[name], new[name] = wanted, data
    for name, data in new.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / name, data)
    text = json.dumps({**old, "weft": version(), "files": digests}, indent=2) + "\n"
    write_bytes(folder / MANIFEST, text.encode())
    return done


def _read(folder):
    path = folder / MANIFEST
    try:
        old = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        text = f"project must have the file {MANIFEST}, and {folder} has none"
        raise ProjectError(text) from None
    except (ValueError, RecursionError) as error:
        raise ProjectError(f"{path} must be the JSON that weft new wrote: {error}") from error
    names = [f.name for f in dataclasses.fields(Facts)]
    is_valid = isinstance(old, dict) and isinstance(old.get("files"), dict) and all(
        isinstance(old.get(name), str) for name in (*names, "weft")
    )
    if not is_valid:
        raise ProjectError(
            f"{path} must have the texts {', '.join(names)} and weft, and the table files"
        )
    if _numbers(old["weft"]) > _numbers(version()):
        raise ProjectError(
            f"{folder} must be of Weft {version()} or older, and was made by {old['weft']}"
        )
    if old["template"] not in TEMPLATES:
        raise ProjectError(
            f"template in {path} must be one of {', '.join(TEMPLATES)}, not {old['template']!r}"
        )
    return old


def _facts(old):
    return Facts(**{f.name: old[f.name] for f in dataclasses.fields(Facts)})


def _numbers(text):
    return [int(part) if part.isdigit() else 0 for part in text.split(".")]
